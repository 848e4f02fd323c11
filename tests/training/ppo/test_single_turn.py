"""verl's agent loop, as the vLLM engine uses it: what was cut at the limit is never graded as an answer."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.generation.conftest import save_tiny_policy
from training.ppo.launch import compose
from training.ppo.reward import compute_score
from training.ppo.single_turn import finish_reason
from training.ppo.verl_config import RunPaths, verl_settings
from vcppo.config import Runtime, load_profile
from vcppo.errors import GraderError

PROBLEM = {
    "raw_prompt": [{"role": "user", "content": "5+7"}],
    "data_source": "sums",
    "reward_model": {"ground_truth": "12"},
    "extra_info": {"id": "sums/1", "grader": "aime"},
    "index": 0,
}


class Server:
    """Stands where verl's client of its vLLM servers stands, which call every response `completed`."""

    def __init__(self, token_ids: Sequence[int]) -> None:
        self.token_ids = list(token_ids)

    async def generate(self, **_: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        return TokenOutput(
            token_ids=self.token_ids, stop_reason="completed", extra_fields={"global_steps": 3}
        )


def respond(policy: Path, text: str, *, ends: bool) -> dict[str, Any]:
    """One trajectory through verl's agent loop worker and its reward manager."""
    from transformers import AutoTokenizer
    from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

    paths = RunPaths(policy, policy, policy / "train.parquet", policy / "work")
    # as on a GPU; nothing is loaded there here
    runtime = Runtime().model_copy(update={"device": "cuda", "rollout_engine": "vllm"})
    config = compose(verl_settings(load_profile("tiny"), runtime, paths))
    tokenizer = AutoTokenizer.from_pretrained(policy)
    token_ids = tokenizer.encode(text, add_special_tokens=False) + [tokenizer.eos_token_id] * ends

    async def trajectory() -> Any:
        manager = NaiveRewardManager(config, tokenizer, compute_score)
        handle = SimpleNamespace(compute_score=SimpleNamespace(remote=manager.run_single))
        worker = AgentLoopWorker(config, Server(token_ids), reward_loop_worker_handles=[handle])
        return await worker._run_agent_loop(
            {},
            {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": False},
            agent_name=config.actor_rollout_ref.rollout.agent.default_agent_loop,
            trace=False,
            **copy.deepcopy(PROBLEM),
        )

    output = asyncio.run(trajectory())
    return {"reward": output.reward_score, **output.extra_fields["reward_extra_info"]}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


def test_a_response_that_ended_by_itself_is_graded(policy: Path) -> None:
    scored = respond(policy, "The answer is 12", ends=True)
    assert (scored["reward"], scored["status"], scored["finish_reason"]) == (1.0, "right", "stop")


def test_a_response_that_was_cut_is_truncated_whatever_stands_where_it_was_cut(policy: Path) -> None:
    scored = respond(policy, "The answer is 12", ends=False)
    assert (scored["reward"], scored["status"], scored["finish_reason"]) == (-1.0, "truncated", "length")


def test_how_a_response_ended_is_told_by_its_last_token() -> None:
    ends = frozenset({2, 7})
    assert finish_reason([5, 7], ends) == "stop"
    assert finish_reason([7, 5], ends) == "length"
    assert finish_reason([2], ends) == "stop"
    assert finish_reason([], ends) == "abort"


def test_a_response_of_which_nobody_says_how_it_ended_is_not_scored() -> None:
    extra = {"id": "sums/1", "grader": "aime", "num_turns": 2}
    with pytest.raises(GraderError, match=r"sums/1: its response came without finish_reason, got grader, id"):
        compute_score("sums", "The answer is 12", "12", extra)
