"""A run whose worker and whose driver were killed ends with the same bits as one that was left alone."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.training.ppo.run_training import FINGERPRINT, NUM_STEPS, make_inputs, start_training
from training.ppo.checkpoints import check_fingerprint
from vcppo.checkpoints import verify
from vcppo.errors import InfrastructureError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("verl_alone")]


class Run:
    """One attempt in a process of its own."""

    def __init__(self, inputs: Path, work: Path, number: int) -> None:
        self.output = work.with_name(f"{work.name}.{number}.log")
        self.process = start_training(inputs, work, self.output)

    def wait_for(self, work: Path, step: int) -> None:
        """Until the checkpoint of `step` is complete; the next step is under way then."""
        manifest = work / "checkpoints" / f"global_step_{step}" / "manifest.json"
        while not manifest.is_file():
            assert self.process.poll() is None, self.output.read_text()[-3000:]
            time.sleep(0.05)

    def workers(self) -> list[psutil.Process]:
        """The processes that hold actor and critic."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if "WorkerDict" in " ".join(child.cmdline())]

    def finish(self) -> int:
        return self.process.wait(timeout=400)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("kill_and_resume")
    inputs, undisturbed, killed = folder / "inputs", folder / "undisturbed", folder / "killed"
    for path in (inputs, undisturbed, killed):
        path.mkdir()
    make_inputs(inputs)
    attempts = [Run(inputs, undisturbed, 1)]
    try:
        attempts.append(Run(inputs, killed, 1))
        attempts[-1].wait_for(killed, 1)
        victims = attempts[-1].workers()
        assert victims, "a worker process must be found"
        victims[0].kill()
        worker_killed = attempts[-1].finish()

        attempts.append(Run(inputs, killed, 2))
        attempts[-1].wait_for(killed, 2)
        attempts[-1].process.kill()
        driver_killed = attempts[-1].finish()

        attempts.append(Run(inputs, killed, 3))
        yield {
            "undisturbed": undisturbed,
            "killed": killed,
            "worker_killed": (worker_killed, attempts[1].output.read_text()),
            "driver_killed": driver_killed,
            "ends": [attempts[0].finish(), attempts[-1].finish()],
            "last": attempts[-1].output.read_text(),
        }
    finally:
        for attempt in attempts:
            attempt.end()


def test_a_killed_worker_ends_the_run_as_infrastructure(runs: dict[str, Any]) -> None:
    code, output = runs["worker_killed"]
    assert code == InfrastructureError.exit_code
    assert "InfrastructureError: a training process died" in output


def test_the_resumed_run_goes_on_from_its_newest_checkpoint(runs: dict[str, Any]) -> None:
    assert runs["driver_killed"] == -signal.SIGKILL
    assert runs["ends"] == [0, 0]
    resumed = re.search(r"DONE resumed from (\d+)", runs["last"])
    assert resumed and int(resumed.group(1)) >= 2


def test_no_guard_acts_in_a_healthy_run(runs: dict[str, Any]) -> None:
    for name in ("undisturbed", "killed"):
        assert not (runs[name] / "guard.json").exists()
        lines = (runs[name] / "metrics.jsonl").read_text().splitlines()
        assert lines and not any("guard/" in line for line in lines)


def test_an_undisturbed_run_prints_lines_for_a_person_only(runs: dict[str, Any]) -> None:
    lines = runs["last"].splitlines()
    assert [line for line in lines if not line.startswith(("[train] ", "DONE "))] == []


def test_weights_optimizers_and_dataloader_are_bit_identical(runs: dict[str, Any]) -> None:
    compared = 0
    for step in range(1, NUM_STEPS + 1):
        left, right = (
            runs[name] / "checkpoints" / f"global_step_{step}" for name in ("undisturbed", "killed")
        )
        files = verify(left)["files"]
        assert files.keys() == verify(right)["files"].keys()
        for name in files:
            if name.endswith((".pt", ".safetensors")):
                assert _content(left / name) == _content(right / name), f"step {step}: {name}"
                compared += 1
    assert compared >= NUM_STEPS * 9  # model, optimizer, extra and exported weights of both, dataloader
    check_fingerprint(left, FINGERPRINT)


def test_rollouts_and_metrics_are_identical(runs: dict[str, Any]) -> None:
    for step in range(1, NUM_STEPS + 1):
        left, right = (runs[name] / "rollouts" / f"{step}.jsonl" for name in ("undisturbed", "killed"))
        assert left.read_text() == right.read_text()
        assert len(left.read_text().splitlines()) == 32
    left, right = (_metrics(runs[name] / "metrics.jsonl") for name in ("undisturbed", "killed"))
    assert [line["step"] for line in left] == list(range(1, NUM_STEPS + 1))
    assert left == right


def _metrics(path: Path) -> list[dict[str, Any]]:
    """Every metric but the clocks and the memory."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if not re.search("timing|perf/", k)} for line in lines]


def _content(path: Path) -> list[tuple[str, Any]]:
    """Every tensor of a file as bytes, every other value by its text."""
    import torch
    from safetensors.torch import load_file

    # our own files of this very test: the optimizer's and the dataloader's state are pickles
    value = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=False)
    return list(_leaves("", value))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    import numpy as np
    import torch

    if hasattr(value, "to_local"):
        value = value.to_local()
    if isinstance(value, torch.Tensor):
        yield name, (value.dtype, tuple(value.shape), value.detach().contiguous().numpy().tobytes())
    elif isinstance(value, np.ndarray):
        yield name, value.tobytes()
    elif isinstance(value, dict):
        for key in value:
            yield from _leaves(f"{name}/{key}", value[key])
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(f"{name}/{index}", item)
    else:
        yield name, repr(value)
