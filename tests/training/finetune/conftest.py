"""A small policy, traces and rollouts that a job of a few seconds can be run on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from training.finetune.rollouts import Rollout
from training.models import build_initial_policy, save_policy
from vcppo.config import TinyModel

SMALL = TinyModel(hidden_size=16, intermediate_size=32, num_layers=1, num_heads=2, num_kv_heads=2)


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved policy of SMALL size."""
    folder = tmp_path_factory.mktemp("policy")
    save_policy(*build_initial_policy(SMALL, seed=1), folder)
    return folder


def make_rollouts(num_prompts: int = 24, samples: int = 4, seed: int = 1) -> list[Rollout]:
    """Responses whose first token tells right from wrong; every seventh was cut at the length limit."""
    generator = random.Random(seed)
    rollouts = []
    for prompt in range(num_prompts):
        prompt_ids = tuple(generator.randrange(30, 40) for _ in range(generator.randrange(3, 7)))
        for sample in range(samples):
            right = generator.random() < 0.5
            finished = (prompt * samples + sample) % 7 != 0
            body = [50 if right else 60] + [
                generator.randrange(70, 90) for _ in range(generator.randrange(1, 9))
            ]
            rollouts.append(
                Rollout(
                    prompt=f"p{prompt}",
                    sample=sample,
                    prompt_ids=prompt_ids,
                    response_ids=(*body, 2) if finished else tuple(body),
                    score=1.0 if right and finished else -1.0,
                    right=right and finished,
                    finished=finished,
                )
            )
    return rollouts


@pytest.fixture
def rollouts() -> list[Rollout]:
    return make_rollouts()
