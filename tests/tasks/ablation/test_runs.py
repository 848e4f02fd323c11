"""A study of one short GRPO run through its real stages: trained, evaluated, collected, not run twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.tasks.conftest import ROOT, lay_workspace
from tests.training.ppo.run_training import make_inputs, short_config, start
from vcppo.config import dump_yaml
from vcppo.files import sha256_path
from vcppo.pipeline import ABLATION, ABLATION_SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580), pytest.mark.usefixtures("verl_alone")]


def lay_study(workspace: Path) -> None:
    lay_workspace(workspace)
    (workspace / "ablation").mkdir()
    shutil.copy(ROOT / ABLATION_SOURCE, workspace / ABLATION)
    changes = {"algorithm": "grpo", "num_steps": 2, "save_every_steps": 1}
    row = {"name": "grpo", "label": "GRPO", "num_seeds": 1, "changes": changes}
    values = short_config().model_dump(mode="json")
    values["data"]["sources"][0]["name"] = "sums"
    values["evaluate"] |= {"samples_per_problem": 2, "pass_at": [1], "max_parser_failure_rate": None}
    values["ablation"] = {
        "rows": [row],
        "tables": [{"title": "All", "rows": ["grpo"]}],
        "evaluate_steps": [1],
    }
    (workspace / "params.yaml").write_text(dump_yaml(type(short_config()).model_validate(values)))
    inputs = workspace / "inputs"
    inputs.mkdir()
    make_inputs(inputs, taught=True)
    shutil.copytree(inputs / "policy", workspace / "models" / "sft")
    prepared = workspace / "data" / "prepared"
    prepared.mkdir(parents=True)
    for split in ("train", "eval"):
        shutil.copy(inputs / "train.parquet", prepared / f"{split}.parquet")
    for unused in ("reward_model", "ablation_critics"):
        (workspace / "models" / unused).mkdir()
        (workspace / "models" / unused / "unused.json").write_text("{}")
    (workspace / "models" / "ablation_critics" / "critics.json").write_text("[]")


def repeat_stage(workspace: Path, log: Path) -> str:
    process = start(["-m", "tasks", "ablation_runs"], workspace, log)
    assert process.wait(timeout=300) == 0, log.read_text()[-3000:]
    return log.read_text()


def test_a_run_is_trained_evaluated_and_taken_as_it_is_the_next_time(tmp_path: Path) -> None:
    lay_study(tmp_path)
    first = repeat_stage(tmp_path, tmp_path / "first.log")
    assert "[ablation_runs] 1 runs, 0 finished before" in first
    assert "[ablation_runs] 1/1 grpo-0: finished at step 2" in first

    out = tmp_path / "data" / "ablation"
    (run,) = json.loads((out / "runs.json").read_text())
    assert (run["row"], run["seed_index"], run["outcome"], run["last_step"]) == ("grpo", 0, "finished", 2)
    assert sorted(run["evaluations"]) == ["1", "2"]
    measures = next(iter(run["evaluations"]["2"].values()))
    assert (measures["num_problems"], measures["samples_per_problem"]) == (40, 2)
    steps = [json.loads(line) for line in (out / "metrics/grpo/0.jsonl").read_text().splitlines()]
    assert [line["step"] for line in steps] == [1, 2]
    assert "critic/value_bias" not in steps[0]
    assert (out / "base.json").is_file()
    work = tmp_path / "work" / "ablation_run" / run["fingerprint"]
    assert not (work / "checkpoints").exists()

    before = sha256_path(out)
    shutil.rmtree(tmp_path / "work" / "ablation_runs", ignore_errors=True)
    second = repeat_stage(tmp_path, tmp_path / "second.log")
    assert "[ablation_runs] 1 runs, 1 finished before" in second
    assert sha256_path(out) == before
