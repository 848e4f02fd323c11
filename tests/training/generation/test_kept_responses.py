"""A kill loses no finished response, whole shard or not, and what is kept is not drawn again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.generation import draw_for_tests as drawing
from tests.training.generation.chat_server import Server, completion
from tests.training.generation.conftest import save_tiny_policy
from training.generation.engine import Engine
from training.generation.kept_responses import KeptResponses, kept_path
from training.generation.noise import key_seed
from training.generation.rollouts import read_rollouts
from training.generation.samples import Draw, Request, Response
from vcppo.config.base import SamplingConfig
from vcppo.errors import InfrastructureError

ROOT = Path(__file__).resolve().parents[3]
DRAW = Draw(SamplingConfig(temperature=0.9, top_k=30), 40, "test")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


def response(request: Request, text: str = "3 + 4 = 7\n\N{MULTIPLICATION SIGN}") -> Response:
    log_probs = tuple(np.float32([-0.1, -1e-7, -23.456789]).tolist())
    return Response(request, text, "stop", 3, "torch", (1, 2), (3, 4, 5), log_probs)


def test_kept_responses_come_back_to_the_bit(tmp_path: Path) -> None:
    shard = drawing.plan(tmp_path).shards(DRAW)[0]
    first, second = shard.requests[:2]
    settings = drawing.settings(Path("models/policy"))
    KeptResponses(shard.path, settings, DRAW).add([response(first)])
    kept = KeptResponses(shard.path, settings, DRAW)
    assert kept.get(first) == response(first) and kept.get(second) is None


def test_a_torn_line_is_forgotten_and_the_next_one_stands_alone(tmp_path: Path) -> None:
    shard = drawing.plan(tmp_path).shards(DRAW)[0]
    first, second, third = shard.requests[:3]
    settings = drawing.settings(Path("models/policy"))
    KeptResponses(shard.path, settings, DRAW).add([response(first), response(second)])
    path = kept_path(shard.path)
    path.write_bytes(path.read_bytes()[:-20])
    kept = KeptResponses(shard.path, settings, DRAW)
    assert kept.get(first) is not None and kept.get(second) is None
    kept.add([response(third)])
    again = KeptResponses(shard.path, settings, DRAW)
    assert [again.get(request) is not None for request in (first, second, third)] == [True, False, True]


@pytest.mark.parametrize(
    "other",
    [
        lambda s, d: (replace(s, seed=2), d),
        lambda s, d: (replace(s, dtype="bfloat16"), d),
        lambda s, d: (s, replace(d, max_response_tokens=8)),
        lambda s, d: (s, replace(d, sampling=SamplingConfig(temperature=0.5))),
    ],
)
def test_what_was_drawn_otherwise_does_not_count(tmp_path: Path, other: Callable[..., Any]) -> None:
    shard = drawing.plan(tmp_path).shards(DRAW)[0]
    settings = drawing.settings(Path("models/policy"))
    KeptResponses(shard.path, settings, DRAW).add([response(shard.requests[0])])
    assert KeptResponses(shard.path, *other(settings, DRAW)).get(shard.requests[0]) is None


def test_batches_finished_before_a_failure_are_not_drawn_again(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing.draw(policy, tmp_path / "whole", workers=1)
    drawn: list[str] = []
    real = Engine._sample_batch

    def second_fails(self: Engine, requests: Any, prompts: Any, draw: Draw) -> list[Response]:
        if len(drawn) == 4:
            raise InfrastructureError("the machine went away")
        drawn.extend(request.key for request in requests)
        return real(self, requests, prompts, draw)

    monkeypatch.setattr(Engine, "_sample_batch", second_fails)
    with pytest.raises(InfrastructureError):
        drawing.draw(policy, tmp_path / "broken", workers=1)
    assert not list((tmp_path / "broken").glob("*.parquet"))
    before, drawn[:] = list(drawn), ["another attempt"]
    drawing.draw(policy, tmp_path / "broken", workers=1)
    assert len(before) == 4 and not set(before) & set(drawn)
    assert read_rollouts(tmp_path / "broken") == read_rollouts(tmp_path / "whole")
    assert not list((tmp_path / "broken").glob("*.jsonl")), "the shards are whole"


def test_a_killed_client_asks_the_server_only_for_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    answered = 0

    def five_and_no_more(body: dict[str, Any]) -> tuple[int, Any]:
        nonlocal answered
        with server.lock:
            answered += 1
            late = answered > 5
        if late:
            time.sleep(600)
        return completion(f"seed {body['seed']}")

    server.script = [five_and_no_more]
    command = [sys.executable, "-m", drawing.__name__, "models/policy", str(tmp_path), "1", server.url]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    path = kept_path(tmp_path / "shard-00000.parquet")
    deadline = time.monotonic() + 120
    while not (path.is_file() and path.read_text().count("\n") == 1 + 5):
        assert process.poll() is None and time.monotonic() < deadline, "five responses were not kept"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    server.seen.clear()
    server.script = [lambda body: completion(f"seed {body['seed']}")]
    drawing.draw(Path("models/policy"), tmp_path, workers=1, server=server.url)
    rows = read_rollouts(tmp_path)
    assert len(server.seen) == len(rows) - 5
    keys = [f"test/{row['id']}/{row['sample']}" for row in rows]
    assert [row["response"] for row in rows] == [f"seed {key_seed(1, key)}" for key in keys]
    server.close()
