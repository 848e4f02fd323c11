"""An algorithm's name is kept by its settings; what keeps it not is named with what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from training.ppo.verl_config import RunPaths, verl_settings
from vcppo.config import Config, Runtime, load_profile

VAPO: dict[str, Any] = {
    "algorithm": "vapo",
    "samples_per_prompt": 4,
    "gae.lam_actor": "length_adaptive",
    "actor.clip_ratio_high": 0.28,
    "actor.language_model_loss_coefficient": 0.1,
}
PPO: dict[str, Any] = {"algorithm": "ppo", "gae.lam_critic": 0.95}
GRPO: dict[str, Any] = {"algorithm": "grpo", "samples_per_prompt": 4}


def changed(keys: dict[str, Any]) -> Config:
    """The tiny profile with dotted keys of `train` set."""
    values = load_profile("tiny").model_dump()
    for key, value in keys.items():
        *sections, last = key.split(".")
        place = values["train"]
        for section in sections:
            place = place[section]
        place[last] = value
    return Config.model_validate(values)


def settings(keys: dict[str, Any], tmp_path: Any) -> dict[str, Any]:
    paths = RunPaths(tmp_path / "sft", tmp_path / "critic", tmp_path / "train.parquet", tmp_path / "work")
    return verl_settings(changed(keys), Runtime(), paths)


def test_vapo_brings_all_its_ingredients_to_verl(tmp_path: Any) -> None:
    found = settings(VAPO, tmp_path)
    actor = "actor_rollout_ref.actor"
    assert found["vcppo.gae"]["lam_actor"] == "length_adaptive"
    assert (found[f"{actor}.clip_ratio_low"], found[f"{actor}.clip_ratio_high"]) == (0.2, 0.28)
    assert found[f"{actor}.loss_agg_mode"] == "token-mean"
    assert found[f"{actor}.policy_loss.loss_mode"] == "clip_and_language_model"
    assert found["actor_rollout_ref.model.external_lib"] == "training.ppo.policy_loss"
    assert found["vcppo.language_model_loss"] == 0.1
    assert found["actor_rollout_ref.rollout.n"] == 4


@pytest.mark.parametrize("algorithm", [PPO, GRPO, {"algorithm": "vc_ppo"}])
def test_the_others_keep_verls_own_loss(algorithm: dict[str, Any], tmp_path: Any) -> None:
    found = settings(algorithm, tmp_path)
    assert not [key for key in found if "policy_loss" in key or "external_lib" in key]


def test_vc_ppo_takes_any_single_ingredient(tmp_path: Any) -> None:
    found = settings({"actor.language_model_loss_coefficient": 0.05}, tmp_path)
    assert found["vcppo.language_model_loss"] == 0.05
    assert changed({"gae.lam_actor": "length_adaptive"}).train.algorithm == "vc_ppo"


def test_k_critic_updates_an_actor_update(tmp_path: Any) -> None:
    found = settings({"critic.epochs": 3}, tmp_path)
    assert (found["critic.ppo_epochs"], found["actor_rollout_ref.actor.ppo_epochs"]) == (3, 1)


def test_the_reference_model_can_be_loaded_to_measure_only(tmp_path: Any) -> None:
    assert settings({}, tmp_path)["actor_rollout_ref.actor.use_kl_loss"] is False
    found = settings({"actor.measure_kl_to_sft": True}, tmp_path)
    assert found["actor_rollout_ref.actor.use_kl_loss"] is True
    assert found["actor_rollout_ref.actor.kl_loss_coef"] == 0.0


@pytest.mark.parametrize(
    ("start", "keys", "complaint"),
    [
        (PPO, {"gae.lam_critic": 1.0}, "'ppo' has one lambda, got gae.lam_actor=0.95 and gae.lam_critic=1.0"),
        (
            PPO,
            {"gae.lam_actor": "length_adaptive"},
            "'ppo' has one lambda, got gae.lam_actor=length_adaptive",
        ),
        (VAPO, {"gae.lam_actor": 0.95}, "gae.lam_actor is 0.95, allowed is 'length_adaptive'"),
        (VAPO, {"actor.clip_ratio_high": 0.2}, "actor.clip_ratio_high is 0.2, allowed is above"),
        (VAPO, {"actor.loss_aggregation": "sequence"}, "loss_aggregation is 'sequence', allowed is 'token'"),
        (
            VAPO,
            {"actor.language_model_loss_coefficient": 0.0},
            "language_model_loss_coefficient is 0.0, allowed is above 0",
        ),
        (VAPO, {"samples_per_prompt": 1}, "samples_per_prompt is 1, allowed is 2 or more"),
        (
            VAPO,
            {"critic_start": "sft"},
            "critic.warmup_steps is 0 with critic_start 'sft', allowed is above 0",
        ),
        (GRPO, {"samples_per_prompt": 1}, "samples_per_prompt is 1, allowed is 2 or more"),
        (GRPO, {"gae.fallback": {}}, "gae.fallback is set, allowed is null"),
    ],
)
def test_settings_that_break_the_name_are_named(
    start: dict[str, Any], keys: dict[str, Any], complaint: str
) -> None:
    assert changed(start).train.algorithm == start["algorithm"]
    with pytest.raises(ValidationError) as caught:
        changed(start | keys)
    assert complaint in str(caught.value)


def test_a_value_warm_up_may_stand_for_value_pretraining() -> None:
    warmed_up = VAPO | {"critic_start": "sft", "critic.warmup_steps": 2}
    assert changed(warmed_up).train.critic.warmup_steps == 2
