"""The same job on two workers of Ray Train."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ray.train import ControllerError, WorkerGroupError

from tests.training.finetune import small
from training.finetune.distributed import _own_error, run_job
from training.finetune.trainer import read_history
from training.models import load_policy
from vcppo.config import Runtime
from vcppo.errors import CheckpointError, DivergenceError, InfrastructureError, VcppoError


@pytest.mark.slow
def test_two_workers_follow_the_curve_of_one(tmp_path: Path, policy_folder: Path) -> None:
    """Each takes half of every batch; what is left are other sums of floats and another order of examples."""
    run_job(
        small.RUNNERS["sft"], small.make_job("sft", tmp_path / "one", tmp_path, num_epochs=6.0), small.ignore
    )
    job = small.make_job("sft", tmp_path / "two", tmp_path, Runtime(devices_per_node=2), num_epochs=6.0)
    run_job(small.RUNNERS["sft"], job, small.ignore)
    one, two = ([e for e in read_history(tmp_path / name) if "loss" in e] for name in ("one", "two"))
    assert [entry["step"] for entry in two] == [entry["step"] for entry in one]
    assert two[0]["loss"] == pytest.approx(one[0]["loss"], rel=0.05)
    assert two[-1]["loss"] == pytest.approx(one[-1]["loss"], rel=0.2)
    assert two[-1]["loss"] < 0.8 * two[0]["loss"]
    policy, _ = load_policy(tmp_path / "two" / "model")
    assert all(torch.isfinite(p).all() for p in policy.parameters())


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (DivergenceError("step 2: loss is nan"), DivergenceError),
        (CheckpointError("no value head"), CheckpointError),
        (MemoryError("killed"), InfrastructureError),
    ],
)
def test_a_workers_own_error_arrives_as_it_was(failure: Exception, expected: type[VcppoError]) -> None:
    error = _own_error(WorkerGroupError("training failed", {1: failure}))
    assert type(error) is expected
    assert str(failure) in str(error)


def test_any_other_failure_of_ray_may_be_tried_again() -> None:
    error = _own_error(ControllerError(RuntimeError("no resources")))
    assert type(error) is InfrastructureError
    assert error.retryable
    assert "no resources" in str(error)
