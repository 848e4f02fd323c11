"""Which runs a study asks for: rows, seeds, critics, and what makes a finished run valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.ablation.plan import PlannedRun, plan
from vcppo.config import Config, load_profile
from vcppo.errors import CheckpointError

GRPO = {"name": "grpo", "label": "GRPO", "num_seeds": 2}
GRPO["changes"] = {"algorithm": "grpo", "prompts_per_step": 48, "samples_per_prompt": 4}
PPO = {"name": "ppo", "label": "PPO", "pretraining_share": 0, "num_seeds": 1}
PPO["changes"] = {"algorithm": "ppo", "gae.lam_critic": 0.95}
VC_PPO = {"name": "vc_ppo", "label": "VC-PPO", "num_seeds": 2}
HALF = {"name": "half", "label": "half the pretraining", "pretraining_share": 0.5, "num_seeds": 1}
CODE = {"training/ppo": "1" * 64}


def study(*rows: dict[str, Any], start_from: str = "reward_model", **ablation: Any) -> Config:
    values = load_profile("ablation").model_dump()
    values["pretrain_critic"]["start_from"] = start_from
    tables = [{"title": "All", "rows": [row["name"] for row in rows]}]
    values["ablation"] = {"rows": list(rows), "tables": tables, "pretraining_shares": [0.5, 1], **ablation}
    return Config.model_validate(values)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shares = [f"models/ablation_critics/share-{share}" for share in ("0.5", "1")]
    for folder in ("models/sft", "models/reward_model", "data/prepared", *shares):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text(folder)
    return tmp_path


def by_name(runs: list[PlannedRun]) -> dict[str, PlannedRun]:
    return {run.name: run for run in runs}


def test_every_row_gets_its_seeds_and_all_first_seeds_come_first() -> None:
    runs = plan(study(GRPO, PPO, VC_PPO), CODE)
    assert [run.name for run in runs] == ["grpo-0", "ppo-0", "vc_ppo-0", "grpo-1", "vc_ppo-1"]
    assert [run.config.seed for run in runs] == [1, 1, 1, 2, 2]


def test_a_row_differs_from_the_profile_in_what_it_names_and_in_its_critic() -> None:
    config = study(GRPO, PPO, VC_PPO, HALF)
    runs = by_name(plan(config, CODE))
    ppo, half = runs["ppo-0"], runs["half-0"]
    assert (ppo.config.train.algorithm, ppo.config.train.gae.lam_critic) == ("ppo", 0.95)
    assert ppo.config.train.actor == config.train.actor
    assert ppo.critic == Path("models/reward_model")
    assert ppo.config.train.critic_start == "reward_model"
    assert half.critic == Path("models/ablation_critics/share-0.5")
    assert half.config.train.critic_start == "value_pretrained"
    assert runs["grpo-0"].critic is None
    assert by_name(plan(study(PPO, start_from="sft"), CODE))["ppo-0"].critic is None


def test_a_row_can_only_start_from_a_pretraining_that_there_is() -> None:
    with pytest.raises(ValueError, match=r"from pretraining shares 0\.5, which are not in .*\(1\.0\)"):
        study(PPO, HALF, pretraining_shares=[1.0])


def test_checkpoints_are_kept_until_they_are_evaluated() -> None:
    long = {
        "name": "long",
        "label": "Long",
        "num_seeds": 1,
        "changes": {"num_steps": 99, "save_every_steps": 3},
    }
    run, _ = plan(study({**VC_PPO, "num_seeds": 1}, long, evaluate_steps=[12, 99]), CODE)
    assert (run.config.train.num_steps, run.config.train.save_every_steps) == (24, 12)
    assert run.evaluated_steps == (12, 24)
    assert run.config.train.keep_checkpoints == 2


def test_a_finished_run_stays_valid_when_rows_are_added_and_not_when_what_made_it_changes(
    workspace: Path,
) -> None:
    before = by_name(plan(study(PPO, VC_PPO), CODE))
    after = by_name(plan(study(GRPO, PPO, {**VC_PPO, "label": "renamed", "num_seeds": 3}, HALF), CODE))
    assert {name: after[name].fingerprint for name in before} == {n: r.fingerprint for n, r in before.items()}
    assert len({run.fingerprint for run in after.values()}) == len(after)

    (workspace / "models/ablation_critics/share-1/file").write_text("another critic")
    changed = by_name(plan(study(PPO, VC_PPO), CODE))
    assert changed["ppo-0"].fingerprint == before["ppo-0"].fingerprint
    assert changed["vc_ppo-0"].fingerprint != before["vc_ppo-0"].fingerprint
    other_code = by_name(plan(study(PPO, VC_PPO), {"training/ppo": "2" * 64}))
    assert other_code["ppo-0"].fingerprint != before["ppo-0"].fingerprint


def test_a_row_whose_reward_model_was_not_trained_is_refused(workspace: Path) -> None:
    (workspace / "models/reward_model/unused.json").write_text("{}")
    with pytest.raises(CheckpointError, match="reward_model: holds no reward model; run `dvc repro"):
        plan(study(PPO), CODE)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"changes": {"gae.lam": 1}},
            "train.gae.lam is no key, allowed are gamma, lam_actor",
        ),
        ({"changes": {"gay.lam_actor": 1}}, "row x: changes: train.gay.lam_actor is no key"),
        ({"changes": {"gae.lam_actor": 1.5}}, "ablation row x: train.gae.lam_actor"),
        ({"changes": {"algorithm": "ppo"}}, "ablation row x: train: .*has one lambda"),
        ({"changes": {"save_every_steps": 5}}, "evaluate_steps: 12 has no checkpoint"),
    ],
)
def test_a_row_that_is_no_configuration_is_refused_by_name(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study({"name": "x", "label": "X", **row}, evaluate_steps=[12])


def test_tables_and_comparisons_may_only_name_rows() -> None:
    with pytest.raises(ValueError, match="unknown rows vapo; rows are ppo, vc_ppo"):
        study(PPO, VC_PPO, comparisons=[{"better": "vapo", "worse": "ppo"}])
    with pytest.raises(ValueError, match="row names must differ, got ppo, ppo"):
        study(PPO, PPO)
