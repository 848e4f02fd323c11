"""Stages sft, reward_model and pretrain_critic in a workspace, with a very small model and rollouts of
known quality.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

import tasks.prepare
import tasks.pretrain_critic
import tasks.reward_model
import tasks.sft
from tasks.stage import run_stage
from tests.tasks.conftest import Workspace
from tests.training.finetune import small
from training.finetune.rollouts import Rollout
from training.models import build_initial_policy, load_policy, load_value_model, value_head_sha256
from vcppo.errors import CheckpointError, DataError

SOURCE = {
    "kind": "running_sum",
    "name": "sums",
    "num_problems": 40,
    "eval_count": 4,
    "num_digits": 3,
    "sft_traces_per_problem": 2,
}


@pytest.fixture(autouse=True)
def _in_workspace(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.configure([SOURCE])
    configure(workspace, {})
    monkeypatch.chdir(workspace.path)


def configure(workspace: Workspace, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Values of params.yaml: the smallest model, and what a test changes, by section."""
    path = workspace.path / "params.yaml"
    values = yaml.safe_load(path.read_text())
    optimizer = {"learning_rate": 0.01, "warmup_steps": 2}
    values["model"] = small.MODEL.model_dump(mode="json")
    values["sft"] |= {"optimizer": optimizer, "batch_size": 16, "num_epochs": 2}
    values["reward_model"] |= {"optimizer": optimizer, "batch_size": 16, "num_epochs": 6}
    values["pretrain_critic"] |= {"optimizer": optimizer, "batch_size": 16, "max_epochs": 8, "patience": 8}
    for section, change in changes.items():
        values[section] |= change
    path.write_text(yaml.safe_dump(values))


def prepare() -> None:
    run_stage("prepare", tasks.prepare.run)
    Path("metrics").mkdir(exist_ok=True)
    Path("metrics/validate.json").write_text("{}")


def write_inputs_of_critic(rollouts: Sequence[Rollout]) -> None:
    """models/sft, data/rollouts and an unused reward model, without the stages that make them."""
    small.write_policy(Path("models/sft"))
    rows = [
        {
            "id": r.prompt,
            "sample": r.sample,
            "prompt_ids": list(r.prompt_ids),
            "response_ids": list(r.response_ids),
            "score": r.score,
            "status": "right" if r.right else "wrong" if r.finished else "truncated",
            "finish_reason": "stop" if r.finished else "length",
        }
        for r in rollouts
    ]
    Path("data/rollouts").mkdir(parents=True)
    for shard in range(2):
        pq.write_table(pa.Table.from_pylist(rows[shard::2]), f"data/rollouts/shard-{shard:05d}.parquet")
    run_stage("reward_model", tasks.reward_model.run)


def read_json(path: str) -> dict[str, Any]:
    return json.loads(Path(path).read_text())


def read_csv(path: str) -> list[dict[str, str]]:
    with Path(path).open() as stream:
        return list(csv.DictReader(stream))


def test_sft_publishes_policy_metrics_plot_and_record() -> None:
    prepare()
    run_stage("sft", tasks.sft.run)
    metrics, plot = read_json("metrics/sft.json"), read_csv("plots/sft.csv")
    assert (metrics["num_traces"], metrics["num_too_long"]) == (72, 0)
    assert metrics["num_steps"] == len(plot) == 10
    assert list(plot[0]) == ["step", "loss", "learning_rate"]
    assert float(plot[-1]["loss"]) < float(plot[0]["loss"])
    policy, tokenizer = load_policy(Path("models/sft"))
    assert policy.config.hidden_size == small.MODEL.hidden_size
    assert tokenizer.chat_template
    assert read_json("records/sft.json")["metrics"] == metrics


def test_sft_switched_off_passes_the_model_through(workspace: Workspace) -> None:
    configure(workspace, {"sft": {"enabled": False}})
    prepare()
    run_stage("sft", tasks.sft.run)
    initial, _ = build_initial_policy(small.MODEL, seed=1)
    published, _ = load_policy(Path("models/sft"))
    pairs = zip(initial.parameters(), published.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert read_json("metrics/sft.json") == {"enabled": False, "num_steps": 0}
    assert Path("plots/sft.csv").read_text() == "step,loss,learning_rate\n"


def test_sft_without_traces_says_what_to_do(workspace: Workspace) -> None:
    workspace.configure([{**SOURCE, "sft_traces_per_problem": 0}])
    configure(workspace, {})
    prepare()
    with pytest.raises(DataError, match=r"sft\.parquet: holds no trace.*sft\.enabled: false"):
        run_stage("sft", tasks.sft.run)
    assert not Path("models/sft").exists()


def test_unused_reward_model_is_said_so_without_importing_torch(workspace: Workspace) -> None:
    small.write_policy(Path("models/sft"))
    Path("data/rollouts").mkdir(parents=True)
    code = (
        "import sys; from tasks.stage import run_stage; import tasks.reward_model as stage; "
        "run_stage('reward_model', stage.run); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "neither" in read_json("models/reward_model/unused.json")["reason"]
    assert read_json("metrics/reward_model.json") == {"trained": False}


def test_pretrain_critic_publishes_critic_curves_and_a_passed_gate() -> None:
    write_inputs_of_critic(small.make_rollouts())
    run_stage("pretrain_critic", tasks.pretrain_critic.run)
    metrics, gate = read_json("metrics/pretrain_critic.json"), read_json("models/critic/gate.json")
    assert gate["passed"] is metrics["gate_passed"] is True
    assert gate["reasons"] == []
    assert metrics["num_rollouts"] == 96
    assert metrics["value_loss_end"] < metrics["value_loss_start"]
    assert metrics["explained_variance"] > 0.2
    assert load_value_model(Path("models/critic")).config.num_labels == 1
    assert metrics["value_head_sha256"] == value_head_sha256(Path("models/critic"))
    curve = read_csv("plots/pretrain_critic.csv")
    assert list(curve[0]) == [
        "step",
        "value_loss",
        "held_out_value_loss",
        "explained_variance",
        "value_bias",
    ]
    assert curve[0]["step"] == "0"
    assert all(row["value_loss"] for row in curve)
    assert float(curve[0]["held_out_value_loss"]) == metrics["value_loss_start"]
    positions = read_csv("plots/value_by_position.csv")
    assert list(positions[0]) == ["position", "value", "return", "count"]
    assert len(positions) <= 20
    assert sum(int(row["count"]) for row in positions) == sum(row["count"] for row in metrics["by_token"])


def test_a_critic_that_misses_its_gate_is_published_with_the_reasons(workspace: Workspace) -> None:
    configure(workspace, {"pretrain_critic": {"gate": {"min_explained_variance": 0.99}}})
    write_inputs_of_critic(small.make_rollouts())
    run_stage("pretrain_critic", tasks.pretrain_critic.run)
    gate = read_json("models/critic/gate.json")
    assert not gate["passed"]
    assert "is below 0.99" in gate["reasons"][0]
    assert read_json("metrics/pretrain_critic.json")["gate_reasons"] == gate["reasons"]


def test_a_dead_grader_fails_the_gate() -> None:
    write_inputs_of_critic([replace(r, score=-1.0, right=False) for r in small.make_rollouts()])
    run_stage("pretrain_critic", tasks.pretrain_critic.run)
    reasons = read_json("models/critic/gate.json")["reasons"]
    assert any("every held-out return is the same" in reason for reason in reasons)
    assert read_json("metrics/pretrain_critic.json")["explained_variance"] is None


def test_the_critic_starts_from_a_reward_model_and_from_nothing_else(workspace: Workspace) -> None:
    write_inputs_of_critic(small.make_rollouts())
    configure(workspace, {"pretrain_critic": {"start_from": "reward_model", "max_epochs": 1}})
    with pytest.raises(CheckpointError, match="holds no reward model; run `dvc repro reward_model`"):
        run_stage("pretrain_critic", tasks.pretrain_critic.run)
    run_stage("reward_model", tasks.reward_model.run)
    reward = read_json("metrics/reward_model.json")
    assert reward["trained"]
    assert reward["num_pairs"] > 0
    assert not Path("models/reward_model/unused.json").exists()
    run_stage("pretrain_critic", tasks.pretrain_critic.run)
    metrics = read_json("metrics/pretrain_critic.json")
    assert metrics["start_from"] == "reward_model"
    # it begins with the bias that pretraining is there to cure
    assert float(read_csv("plots/pretrain_critic.csv")[0]["value_bias"]) < -0.3
    assert metrics["value_head_sha256"] != reward["value_head_sha256"]
