"""The typed configuration becomes verl's: values land under verl's keys, and ours cannot be overridden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from training.ppo.launch import compose
from training.ppo.verl_config import RunPaths, verl_settings
from vcppo.config import Config, Runtime, load_profile, profile_names
from vcppo.errors import ConfigurationError

PATHS = RunPaths(Path("/m/sft"), Path("/m/critic"), Path("/d/train.parquet"), Path("/w"))


def changed(profile: str = "tiny", **sections: Any) -> Config:
    """A profile with keys of `train` replaced."""
    values = load_profile(profile).model_dump()
    values["train"] |= sections
    return Config.model_validate(values)


def test_the_papers_lambdas_reach_our_trainer() -> None:
    settings = verl_settings(load_profile("tiny"), Runtime(), PATHS)
    assert settings["vcppo.gae"]["lam_actor"] == 0.95
    assert settings["vcppo.gae"]["lam_critic"] == 1.0
    assert settings["algorithm.adv_estimator"] == "gae"
    assert settings["critic.model.path"] == "/m/critic"
    assert settings["critic.cliprange_value"] == 1e9, "plain value loss unless clipping is asked for"


def test_batch_sizes_are_verls_prompts_and_fit_the_devices() -> None:
    config = changed(prompts_per_step=48, samples_per_prompt=4)
    settings = verl_settings(config, Runtime(devices_per_node=2, micro_batch_size=10), PATHS)
    assert settings["actor_rollout_ref.actor.ppo_mini_batch_size"] * 4 == config.train.actor.mini_batch_size
    # 48 responses a mini-batch, 24 a device: the largest divisor up to 10 is 8
    assert settings["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"] == 8
    # responses of up to 48 + 112 tokens: 10 fit into 1600 tokens, at least one must
    for tokens, expected in ((1600, 8), (960, 6), (100, 1)):
        limited = verl_settings(config, Runtime(devices_per_node=2, micro_batch_tokens=tokens), PATHS)
        assert limited["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"] == expected
        assert limited["critic.ppo_micro_batch_size_per_gpu"] == expected
    with pytest.raises(
        ConfigurationError, match="train.actor.mini_batch_size: got 48, allowed are multiples"
    ):
        verl_settings(config, Runtime(devices_per_node=5), PATHS)


def test_grpo_has_no_critic_and_warm_up_counts_critic_steps() -> None:
    grpo = changed(algorithm="grpo", samples_per_prompt=2)
    assert verl_settings(grpo, Runtime(), PATHS)["algorithm.adv_estimator"] == "grpo"
    critic = load_profile("tiny").train.critic.model_dump() | {"warmup_steps": 3}
    # verl's first actor step, so that exactly three steps are the critic's alone
    assert verl_settings(changed(critic=critic), Runtime(), PATHS)["trainer.critic_warmup"] == 4
    grpo = changed(algorithm="grpo", samples_per_prompt=2, critic=critic)
    assert verl_settings(grpo, Runtime(), PATHS)["trainer.critic_warmup"] == 0, "no critic to wait for"


def test_resume_is_a_path_that_we_chose() -> None:
    fresh = verl_settings(load_profile("tiny"), Runtime(), PATHS)
    assert fresh["trainer.resume_mode"] == "disable"
    resumed = verl_settings(load_profile("tiny"), Runtime(), PATHS, resume_from=Path("/w/c/global_step_5"))
    assert resumed["trainer.resume_mode"] == "resume_path"
    assert resumed["trainer.resume_from_path"] == "/w/c/global_step_5"


@pytest.mark.parametrize("key", ["algorithm.gamma", "algorithm", "critic.optim.lr.x", "trainer.total_epochs"])
def test_owned_verl_keys_are_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"train.verl: '{key}'"):
        verl_settings(changed(verl={key: 1}), Runtime(), PATHS)


def test_other_verl_keys_pass_through() -> None:
    settings = verl_settings(changed(verl={"actor_rollout_ref.actor.clip_ratio_c": 5.0}), Runtime(), PATHS)
    assert settings["actor_rollout_ref.actor.clip_ratio_c"] == 5.0


def test_vllm_on_a_cpu_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="VCPPO_ROLLOUT_ENGINE"):
        verl_settings(load_profile("tiny"), Runtime(rollout_engine="vllm"), PATHS)


@pytest.mark.parametrize("profile", profile_names())
def test_every_profile_composes_with_verls_defaults(profile: str) -> None:
    config = load_profile(profile)
    runtime = (
        Runtime() if config.model.kind != "pretrained" else Runtime(device="cuda", rollout_engine="vllm")
    )
    composed = compose(verl_settings(config, runtime, PATHS))
    assert composed.trainer.v1.trainer_mode == "vcppo"
    assert composed.data.train_batch_size == config.train.prompts_per_step
    assert composed.actor_rollout_ref.rollout.n == config.train.samples_per_prompt
    assert composed.critic.optim.lr == config.train.critic.optimizer.learning_rate
    assert composed.actor_rollout_ref.actor.optim.lr == config.train.actor.optimizer.learning_rate
