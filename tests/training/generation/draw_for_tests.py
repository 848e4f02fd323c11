"""Draws the shards of a fixed plan in a process of its own, so that a test can kill it:
`python -m tests.training.generation.draw_for_tests POLICY FOLDER WORKERS [SERVER]`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from training.generation.engine import EngineSettings, ServerAddress
from training.generation.prompts import Problem
from training.generation.rollouts import ShardPlan, generate_shards
from vcppo.config import Runtime
from vcppo.config.base import SamplingConfig
from vcppo.config.stages import RewardConfig

NUM_PROBLEMS, SAMPLES = 12, 3


def settings(policy: Path, *, max_response_tokens: int = 40) -> EngineSettings:
    return EngineSettings(
        policy=policy,
        seed=1,
        sampling=SamplingConfig(temperature=0.9, top_k=30),
        max_prompt_tokens=64,
        max_response_tokens=max_response_tokens,
        batch_size=4,
        num_threads=1,
    )


def plan(folder: Path) -> ShardPlan:
    problems = [
        Problem(f"sums/{i}", "sums", "aime", ({"role": "user", "content": f"Add {i} and 2."},), str(i + 2))
        for i in range(NUM_PROBLEMS)
    ]
    return ShardPlan(folder, problems, SAMPLES, problems_per_shard=2, key_prefix="test")


def draw(policy: Path, folder: Path, workers: int, server: str | None = None) -> list[Path]:
    """server: address of one that speaks OpenAI's interface and is asked instead of the policy."""
    how = settings(policy)
    if server is not None:
        how = replace(how, engine="openai", server=ServerAddress(server, "after", concurrency=3))
    return generate_shards(
        plan(folder),
        how,
        RewardConfig(),
        Runtime(devices_per_node=workers),
        lambda done, total, what: print(f"{done}/{total} {what}", flush=True),
    )


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
