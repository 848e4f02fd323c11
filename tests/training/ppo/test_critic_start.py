"""Where the critic starts is checked before Ray is: a head is there, or is a function of the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.generation.conftest import save_tiny_policy
from training.ppo.critic_start import critic_start
from training.ppo.launch import train
from training.ppo.verl_config import RunPaths
from vcppo.config import Config, Runtime, load_profile
from vcppo.errors import CheckpointError


def config(**changes: object) -> Config:
    values = load_profile("tiny").model_dump()
    values["train"] |= changes
    values["train"]["critic"] |= {"warmup_steps": 1}
    return Config.model_validate(values)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return save_tiny_policy(tmp_path / "policy")


def paths(policy: Path, critic: Path | None) -> RunPaths:
    return RunPaths(policy, critic, policy.parent / "train.parquet", policy.parent / "work")


def test_a_run_from_a_critic_without_a_head_does_not_even_start_ray(policy: Path) -> None:
    import ray

    with pytest.raises(CheckpointError, match=f"{policy}: has no value head"):
        train(config(), Runtime(), paths(policy, policy), "0123456789abcdef")
    assert not ray.is_initialized()


def test_from_the_sft_policy_the_head_is_a_function_of_the_seed(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hashes = []
    for seed in (1, 1, 2):
        start = critic_start(
            config(critic_start="sft").model_copy(update={"seed": seed}), paths(policy, None)
        )
        assert start == policy.parent / "work" / "critic_start"
        hashes.append(capsys.readouterr().out.split("value head ")[1])
    assert hashes[0] == hashes[1] != hashes[2]


def test_grpo_has_no_critic(policy: Path) -> None:
    grpo = config(algorithm="grpo", samples_per_prompt=2)
    assert critic_start(grpo, paths(policy, None)) is None
    assert not (policy.parent / "work").exists()
