"""Two real runs side by side: a stage that a guard ends at once, and training with all of VAPO's ingredients,
which one ends after several steps."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.conftest import lay_workspace
from tests.training.ppo.run_training import make_inputs, short_config, start, start_training
from training.ppo.checkpoints import PREFIX
from training.ppo.guard_rules import FINITE, Start, rules
from training.ppo.metrics_log import read_metrics
from vcppo.checkpoints import by_step, newest_complete
from vcppo.config import dump_yaml
from vcppo.config.train import GuardsConfig, RewardConfig
from vcppo.errors import KlRunawayError, NonFiniteError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(590), pytest.mark.usefixtures("verl_alone")]


@dataclass(frozen=True)
class Finished:
    work: Path
    code: int
    output: str

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return read_metrics(self.work / "metrics.jsonl")


def lay_inputs_of_stage_train(workspace: Path, inputs: Path) -> None:
    """The workspace as stage train finds it, its critic starting from the SFT policy."""
    lay_workspace(workspace)
    (workspace / "params.yaml").write_text(dump_yaml(short_config("diverge")))
    shutil.copytree(inputs / "policy", workspace / "models" / "sft")
    (workspace / "data" / "prepared").mkdir(parents=True)
    shutil.copy(inputs / "train.parquet", workspace / "data" / "prepared")
    for unused in ("critic", "reward_model"):
        (workspace / "models" / unused).mkdir()
        (workspace / "models" / unused / "unused.json").write_text("{}")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Finished]]:
    folder = tmp_path_factory.mktemp("short_runs")
    inputs, stage, vapo = folder / "inputs", folder / "stage", folder / "vapo"
    for path in (inputs, stage, vapo):
        path.mkdir()
    make_inputs(inputs, taught=True)
    lay_inputs_of_stage_train(stage, inputs)
    logs = {name: folder / f"{name}.log" for name in ("stage", "vapo")}
    processes = {
        "stage": start(["-m", "tasks", "train"], stage, logs["stage"], VCPPO_WANDB_MODE="offline"),
        "vapo": start_training(inputs, vapo, logs["vapo"], "vapo", VCPPO_WANDB_MODE="offline"),
    }
    try:
        codes = {name: process.wait(timeout=500) for name, process in processes.items()}
        output = {name: log.read_text() for name, log in logs.items()}
        (work,) = (stage / "work" / "train").iterdir()
        yield {
            "stage": Finished(work, codes["stage"], output["stage"]),
            "vapo": Finished(vapo, codes["vapo"], output["vapo"]),
        }
    finally:
        for process in processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wandb_records(work: Path) -> bytes:
    (segment,) = (work / "wandb").glob("offline-run-*/run-*.wandb")
    return segment.read_bytes()


def test_a_guard_ends_the_run_with_its_own_exit_code_and_message(runs: dict[str, Finished]) -> None:
    run = runs["stage"]
    assert run.code == NonFiniteError.exit_code, run.output[-3000:]
    assert "NonFiniteError: guard non_finite, step 2: " in run.output
    assert "[train] GUARD guard non_finite, step 2: " in run.output
    assert "the last good checkpoint is of step 1" in run.output


def test_the_failure_record_and_the_metrics_show_the_step(runs: dict[str, Finished]) -> None:
    run = runs["stage"]
    record = json.loads((run.work / "guard.json").read_text())
    assert (record["guard"], record["step"], record["last_good_step"]) == ("non_finite", 2, 1)
    assert any(str(value) in ("nan", "inf", "-inf") for value in record["evidence"][-1].values())
    assert [line["step"] for line in run.metrics] == [1, 2]
    assert "guard/non_finite" not in run.metrics[0]
    assert run.metrics[1]["guard/non_finite"] == 1.0
    assert b"guard/non_finite" in wandb_records(run.work), "W&B has the step too"


def test_the_last_good_checkpoint_is_kept_and_the_bad_step_was_never_saved(
    runs: dict[str, Finished],
) -> None:
    root = runs["stage"].work / "checkpoints"
    assert list(by_step(root, PREFIX)) == [1]
    assert newest_complete(root, PREFIX) == (1, root / "global_step_1")


def test_nothing_of_a_stopped_run_is_published(runs: dict[str, Finished]) -> None:
    work = runs["stage"].work
    workspace = work.parents[2]
    made = {str(path.relative_to(workspace)) for path in workspace.glob("*/*")}
    assert not {name for name in made if name.startswith(("models/policy", "data/training", "records"))}
    assert not (work / "out").exists() or not any((work / "out").rglob("*"))
    attempt = json.loads((work / "attempts" / "1.json").read_text())
    assert (attempt["class"], attempt["exit_code"], attempt["retryable"]) == ("NonFiniteError", 20, False)


def test_a_guard_of_several_steps_gives_back_the_checkpoint_from_before_them(
    runs: dict[str, Finished],
) -> None:
    """Step 1 is the critic's warm-up; 2 and 3 are outside the limit, and 2 was saved before that was sure."""
    run = runs["vapo"]
    assert run.code == KlRunawayError.exit_code, run.output[-3000:]
    assert "KlRunawayError: guard kl, steps 2 to 3: actor/ppo_kl " in run.output
    record = json.loads((run.work / "guard.json").read_text())
    assert (record["since_step"], record["step"]) == (2, 3)
    assert (record["last_good_step"], record["set_aside_steps"]) == (1, [2])
    root = run.work / "checkpoints"
    assert newest_complete(root, PREFIX) == (1, root / "global_step_1")
    assert list(by_step(root, PREFIX)) == [1]


class Asked(dict[str, Any]):
    """Metrics that remember which of them were asked for."""

    def __init__(self, metrics: dict[str, Any]) -> None:
        super().__init__(metrics)
        self.keys_asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.keys_asked.add(key)
        return super().__getitem__(key)


def test_every_metric_that_a_guard_reads_is_one_of_a_real_run(runs: dict[str, Finished]) -> None:
    """To a guard a metric that is missing says nothing: under another name it would never act again."""
    metrics = Asked(runs["vapo"].metrics[1])
    start = Start()
    start.see(metrics)
    for rule in rules(GuardsConfig(), RewardConfig()):
        rule.judge(metrics, start)
    assert len(metrics.keys_asked) > len(FINITE) + 8
    assert metrics.keys_asked <= metrics.keys()


def test_vapo_trains_on_several_samples_with_every_ingredient(runs: dict[str, Finished]) -> None:
    run = runs["vapo"]
    warm_up, trained, _ = run.metrics
    assert "actor/pg_loss" not in warm_up, "value warm-up: the critic's step alone"
    assert trained["actor/lm_loss"] > 0
    # the first of two samples of each of 16 prompts, and the second
    rows = [json.loads(line) for line in (run.work / "rollouts" / "2.jsonl").read_text().splitlines()]
    inputs = [row["input"] for row in rows]
    assert len(rows) == 32 and len(set(inputs)) == 16


def test_lambda_is_length_adaptive_and_the_fallback_acts(runs: dict[str, Finished]) -> None:
    warm_up, trained, _ = runs["vapo"].metrics
    assert warm_up["response/length"] < 20, "below 20 tokens VAPO's lambda is 0"
    assert (warm_up["gae/lam_actor"], warm_up["gae/fallback_level"]) == (0.0, 0.0)
    assert warm_up["critic/explained_variance"] < 0
    assert (trained["gae/lam_actor"], trained["gae/fallback_level"]) == (0.5, 1.0)


DIAGNOSTICS = (
    "position/value_0",
    "position/return_0",
    "position/advantage_0",
    "critic/explained_variance",
    "critic/value_bias",
    "critic/value_mean_right",
    "critic/value_mean_wrong",
    "response/truncation_rate",
    "response/answer_rate",
    "response/length_right",
    "response/length_wrong",
    "actor/pg_clipfrac",
    "actor/pg_clipfrac_lower",
    "critic/vf_clipfrac",
    "actor/ppo_kl",
    "actor/kl_to_sft",
    "actor/kl_loss",
    "actor/entropy_loss",
    "stopping/hazard",
    "stopping/advantage",
    "perf/throughput",
    "timing_s/gen",
    "timing_s/values",
    "timing_s/adv",
    "timing_s/update_critic",
    "timing_s/update_actor",
)


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_every_diagnostic_is_in_the_local_record_and_in_wandb(name: str, runs: dict[str, Finished]) -> None:
    run = runs["vapo"]
    assert isinstance(run.metrics[1][name], float)
    assert name.encode() in wandb_records(run.work)
