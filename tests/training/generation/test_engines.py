"""Engines behind one interface: a real HTTP server on loopback, vLLM's arguments as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.training.generation.chat_server import Answer, Server, completion
from training.generation.engine import EngineSettings, ServerAddress, policy_eos_token_ids
from training.generation.engines import make_engine
from training.generation.engines.openai_engine import OpenAIEngine, server_address
from training.generation.engines.vllm_engine import engine_arguments, sampling_arguments
from training.generation.noise import key_seed
from training.generation.prompts import Problem
from training.generation.samples import Draw, Request, Response, plain_requests
from vcppo.config.base import SamplingConfig
from vcppo.errors import ConfigurationError, InfrastructureError

KEY = "sk-of-a-test"
DRAW = Draw(SamplingConfig(temperature=0.6, top_p=0.9, top_k=20), 64, "evaluate")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Server()
    yield server
    server.close()


def settings(**more: Any) -> EngineSettings:
    return EngineSettings(
        **{
            "policy": Path("models/policy"),
            "seed": 3,
            "sampling": SamplingConfig(),
            "max_prompt_tokens": 100,
            "max_response_tokens": 28,
            "batch_size": 8,
            "num_threads": 1,
            **more,
        }
    )


def ask(server: Server, requests: list[Request], **address: Any) -> list[Response]:
    where = ServerAddress(
        **{"base_url": server.url, "model": "after", "concurrency": 4, "backoff_seconds": 0.01, **address}
    )
    return make_engine(settings(engine="openai", server=where)).sample(requests, DRAW)


def requests(count: int) -> list[Request]:
    problem = Problem("p/1", "p", "aime", ({"role": "user", "content": "What is 1 + 1?"},), "2")
    return plain_requests(problem, count)


def test_each_sample_is_one_chat_completion_with_every_setting(server: Server) -> None:
    server.script = [lambda body: completion(f"seed {body['seed']}")]
    responses = ask(server, requests(3))
    # threads finish in any order, responses come in the order of the requests
    assert [r.text for r in responses] == [f"seed {key_seed(3, f'evaluate/p/1/{i}')}" for i in range(3)]
    assert [(r.finish_reason, r.num_tokens, r.engine_version) for r in responses] == [
        ("stop", 7, "served fp_1")
    ] * 3
    body = server.seen[0]
    assert body.pop("seed") in {key_seed(3, f"evaluate/p/1/{i}") for i in range(3)}
    assert body == {
        "path": "/v1/chat/completions",
        "model": "after",
        "messages": [{"role": "user", "content": "What is 1 + 1?"}],
        "n": 1,
        "temperature": 0.6,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 64,
    }
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_no_more_requests_are_under_way_than_allowed(server: Server) -> None:
    server.seconds = 0.02
    assert len(ask(server, requests(12), concurrency=3)) == 12
    assert server.most_under_way == 3


@pytest.mark.parametrize(
    "trouble",
    [
        (500, {"error": "out of memory"}),
        (503, b"warming up"),
        (429, {"error": "slow down"}),
        (200, b"<html>not json"),
        (200, {"choices": []}),
        (200, ["a list"]),
        (200, {"choices": [{"message": None, "finish_reason": "stop"}]}),
        completion("half a respon", reason=None),
    ],
)
def test_a_failing_or_malformed_reply_is_asked_for_again(server: Server, trouble: Answer) -> None:
    server.script = [trouble, trouble, completion("at last")]
    (response,) = ask(server, requests(1))
    assert response.text == "at last" and len(server.seen) == 3


def test_a_server_that_goes_on_failing_ends_it_naming_sample_and_last_words(server: Server) -> None:
    server.script = [(500, {"error": "out of memory"})]
    with pytest.raises(InfrastructureError) as caught:
        ask(server, requests(1))
    assert "sample p/1/0 after 6 tries" in str(caught.value)
    assert "status 500" in str(caught.value) and "out of memory" in str(caught.value)


def test_a_silent_server_is_a_timeout_and_a_missing_one_a_refused_connection(server: Server) -> None:
    server.seconds = 1.0
    with pytest.raises(InfrastructureError, match="ReadTimeout"):
        ask(server, requests(1), timeout_seconds=0.05)
    with pytest.raises(InfrastructureError, match="ConnectError"):
        ask(server, requests(1), base_url="http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "OPENAI_API_KEY"), (404, "offers model 'after'"), (400, "limits on prompt")]
)
def test_a_refusal_is_not_tried_again_and_never_shows_the_key(
    server: Server, status: int, advice: str
) -> None:
    server.script = [(status, {"error": f"bad request with key {KEY}"})]
    with pytest.raises(ConfigurationError) as caught:
        ask(server, requests(1))
    assert len(server.seen) == 1
    assert advice in str(caught.value) and KEY not in str(caught.value) and "[key]" in str(caught.value)


def test_an_empty_completion_is_an_empty_response_and_a_cut_one_is_cut(server: Server) -> None:
    server.script = [completion(""), completion(None, "length"), completion("x", "content_filter")]
    responses = ask(server, requests(3), concurrency=1)
    assert [(r.text, r.finish_reason) for r in responses] == [("", "stop"), ("", "length"), ("x", "abort")]


def test_usage_may_be_missing_and_no_key_sends_no_header(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.script = [completion("ok", usage=None, system_fingerprint=None)]
    (response,) = ask(server, requests(1))
    assert response.num_tokens == 0 and server.keys == [None]
    assert response.engine_version.startswith("served BaseHTTP")  # what the server says of itself


def test_a_policy_is_offered_under_its_own_name() -> None:
    address = server_address("http://h/v1", "run-7-{policy}", "before", 2, 5.0)
    assert address == ServerAddress("http://h/v1", "run-7-before", 2, 5.0)
    with pytest.raises(ConfigurationError, match="VCPPO_OPENAI_BASE_URL"):
        server_address(None, "{policy}", "before", 2, 5.0)
    with pytest.raises(ConfigurationError, match="VCPPO_OPENAI_BASE_URL"):
        OpenAIEngine(settings(engine="openai"))


def test_vllm_is_given_every_setting_and_nothing_of_the_policys_own_generation_config() -> None:
    assert engine_arguments(settings(dtype="bfloat16")) == {
        "model": "models/policy",
        "dtype": "bfloat16",
        "seed": 3,
        "max_model_len": 128,
        "max_num_seqs": 8,
        "tensor_parallel_size": 1,
        "generation_config": "vllm",
        "logprobs_mode": "processed_logprobs",
    }
    assert engine_arguments(settings(tensor_parallel_size=4))["distributed_executor_backend"] == "mp"
    assert sampling_arguments(DRAW, 5, {9, 2}) == {
        "n": 1,
        "temperature": 0.6,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 64,
        "seed": 5,
        "logprobs": 0,
        "stop_token_ids": [2, 9],
    }
    assert sampling_arguments(Draw(SamplingConfig(), 64, "e"), 5, ())["top_k"] == -1


def test_vllm_where_it_is_not_installed_says_what_to_install() -> None:
    pytest.importorskip("torch")
    try:
        import vllm  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigurationError, match="constraints-gpu.txt"):
            make_engine(settings(engine="vllm"))
    else:
        pytest.skip("vllm is installed")


def test_key_seeds_are_stable_over_releases_and_differ_between_samples() -> None:
    seeds = [key_seed(1, f"evaluate/a/{i}") for i in range(100)]
    assert len(set(seeds)) == 100 and all(0 <= seed < 2**31 for seed in seeds)
    assert key_seed(1, "evaluate/a/0") == seeds[0] != key_seed(2, "evaluate/a/0")


def test_the_ends_of_a_folder_are_those_of_its_generation_configuration_and_tokenizer(
    tiny_policy: Path,
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from training.generation.engine import eos_token_ids

    tokenizer = AutoTokenizer.from_pretrained(tiny_policy)
    model = AutoModelForCausalLM.from_pretrained(tiny_policy)
    expected = eos_token_ids(model, tokenizer)
    assert policy_eos_token_ids(tiny_policy, tokenizer) == expected and expected
    for file in tiny_policy.glob("generation_config.json"):
        file.unlink()
    assert policy_eos_token_ids(tiny_policy, tokenizer) == expected
