"""Stage train: where the critic starts from and what is made of the metrics. Whole runs of it are in
tests/training/ppo/test_short_runs.py and in the tests of the pipeline."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tasks.train import (
    PLOTTED,
    critic_folder,
    open_rows,
    plot_table,
    publish_wandb_segments,
    summarise,
)
from vcppo.config import Config, load_profile
from vcppo.errors import CheckpointError, DivergenceError


def config(**train: Any) -> Config:
    values = load_profile("tiny").model_dump()
    values["train"] |= train
    return Config.model_validate(values)


def gated(folder: Path, passed: bool) -> None:
    folder.mkdir(parents=True)
    reasons = [] if passed else ["explained variance -0.3 is below -0.05"]
    (folder / "gate.json").write_text(json.dumps({"passed": passed, "reasons": reasons}))


@pytest.fixture(autouse=True)
def _in_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "train", [{"critic_start": "sft"}, {"algorithm": "grpo", "samples_per_prompt": 2}], ids=["sft", "grpo"]
)
def test_no_critic_is_looked_for_where_none_is_read(train: dict[str, Any]) -> None:
    assert critic_folder(config(**train)) is None


def test_a_critic_that_did_not_pass_its_gate_is_refused_with_the_reason(tmp_path: Path) -> None:
    gated(tmp_path / "models" / "critic", passed=False)
    with pytest.raises(DivergenceError, match="explained variance -0.3 is below -0.05.*Pretrain it longer"):
        critic_folder(config())


def test_a_critic_without_a_value_head_is_refused(tmp_path: Path) -> None:
    from training.models import build_initial_policy, save_policy

    folder = tmp_path / "models" / "critic"
    gated(folder, passed=True)
    save_policy(*build_initial_policy(load_profile("tiny").model, seed=1), folder)
    with pytest.raises(CheckpointError, match="critic"):
        critic_folder(config())


def test_a_reward_model_that_was_not_trained_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models" / "reward_model").mkdir(parents=True)
    (tmp_path / "models" / "reward_model" / "unused.json").write_text("{}")
    with pytest.raises(CheckpointError, match="no reward model was trained"):
        critic_folder(config(critic_start="reward_model"))


STEPS = [
    {
        "step": 1,
        "response/accuracy": 0.5,
        "response/length": 61.0,
        "critic/value_bias": -0.1,
        "critic/explained_variance": None,
        "timing_s/step": 2.0,
        "perf/total_num_tokens": 1000,
    },
    {
        "step": 2,
        "response/accuracy": 0.9,
        "response/length": 82.0,
        "timing_s/step": 4.0,
        "perf/total_num_tokens": 3000,
    },
]


def test_the_summary_puts_first_and_last_step_side_by_side() -> None:
    assert summarise(STEPS, resumed_from=1) == {
        "num_steps": 2,
        "resumed_from": 1,
        "accuracy": {"first": 0.5, "last": 0.9},
        "response_length": {"first": 61.0, "last": 82.0},
        "value_bias": {"first": -0.1, "last": None},
        "explained_variance": {"first": None, "last": None},
        "guards": {},
        "seconds_per_step": 3.0,
        "tokens": 4000,
    }


def test_the_plot_table_has_a_row_a_step_and_leaves_out_what_was_not_measured() -> None:
    rows = list(csv.DictReader(plot_table(STEPS).splitlines()))
    assert list(rows[0]) == ["step", *PLOTTED]
    assert [row["response_length"] for row in rows] == ["61.0", "82.0"]
    assert [row["kl_to_sft"] for row in rows] == ["", ""]


def test_each_attempts_wandb_segment_goes_with_the_rollouts(tmp_path: Path) -> None:
    work, rollouts = tmp_path / "work", tmp_path / "rollouts"
    rollouts.mkdir()
    for attempt in ("offline-run-1-abc", "offline-run-2-abc"):
        folder = work / "wandb" / attempt
        folder.mkdir(parents=True)
        (folder / "run-abc.wandb").write_text(attempt)
        (folder / "debug.log").write_text("noise")
    (work / "wandb" / "latest-run").symlink_to("offline-run-2-abc")
    publish_wandb_segments(work, rollouts)
    found = {str(p.relative_to(rollouts)): p.read_text() for p in rollouts.rglob("*") if p.is_file()}
    assert found == {
        f"wandb/{attempt}/run-abc.wandb": attempt for attempt in ("offline-run-1-abc", "offline-run-2-abc")
    }


def test_where_guards_acted_and_which_rows_were_open_at_the_end() -> None:
    lines = [
        {"step": step, "actor/ppo_kl": kl, "guard/kl": acted}
        for step, kl, acted in ((1, 0.9, None), (2, 0.9, None), (3, 0.9, 1.0), (4, 0.0, None), (5, 0.9, None))
    ]
    assert open_rows(lines, config().train) == {"kl": 5}
    assert open_rows(lines[:4], config().train) == {}
    whole = [
        line
        | {"response/accuracy": 0.5, "response/length": 9.0, "timing_s/step": 1.0, "perf/total_num_tokens": 1}
        for line in lines
    ]
    assert summarise(whole, None)["guards"] == {"kl": {"acted_at": [3]}}
