"""A job that is killed with SIGKILL and run again ends with the bits of one that was not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.finetune import small
from training.finetune.checkpoints import PREFIX
from training.finetune.distributed import run_job
from vcppo.checkpoints import newest_complete
from vcppo.files import sha256_path

ROOT = Path(__file__).resolve().parents[3]


def run_and_kill(kind: str, root: Path, when: str) -> None:
    command = [sys.executable, "-m", "tests.training.finetune.small", kind, str(root), when]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def outcome(job_folder: Path) -> dict[str, object]:
    """Weights, tokenizer, log of every step, held-out figures: everything that a job leaves."""
    measured = job_folder / "measured.json"
    return {
        "model": sha256_path(job_folder / "model"),
        "history": json.loads((job_folder / "history.json").read_text()),
        "measured": json.loads(measured.read_text()) if measured.exists() else None,
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    outcomes = {}
    for kind in ("sft", "critic"):
        root = tmp_path_factory.mktemp(kind)
        small.write_policy(root / "policy")
        run_job(small.RUNNERS[kind], small.make_job(kind, root / "job", root / "policy"), small.ignore)
        outcomes[kind] = outcome(root / "job")
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "whens"),
    [
        # a torn checkpoint beside a whole one; right after an epoch; between the last update and the end
        ("sft", ["save:4", "step:11", "end"]),
        ("critic", ["save:2", "step:9", "end"]),
    ],
)
def test_killed_and_resumed_equals_undisturbed(
    kind: str, whens: list[str], tmp_path: Path, undisturbed: dict[str, dict[str, object]]
) -> None:
    for when in whens:
        run_and_kill(kind, tmp_path, when)
        assert not (tmp_path / "job" / "history.json").exists()
    run_job(small.RUNNERS[kind], small.make_job(kind, tmp_path / "job", tmp_path / "policy"), small.ignore)
    assert outcome(tmp_path / "job") == undisturbed[kind]


def test_every_step_is_in_the_history_once(undisturbed: dict[str, dict[str, object]]) -> None:
    for kind, num_steps in (("sft", 12), ("critic", 22)):
        history = undisturbed[kind]["history"]
        assert isinstance(history, list)
        assert [entry["step"] for entry in history if "loss" in entry] == list(range(1, num_steps + 1))


def test_a_finished_job_is_not_run_again(tmp_path: Path) -> None:
    job = small.make_job("sft", tmp_path, tmp_path)
    run_job(small.RUNNERS["sft"], job, small.ignore)
    before = outcome(tmp_path)
    steps: list[int] = []
    run_job(small.RUNNERS["sft"], job, lambda done, total, what: steps.append(done))
    assert (steps, outcome(tmp_path)) == ([], before)


def test_at_most_two_checkpoints_are_kept_and_both_are_whole(tmp_path: Path) -> None:
    run_job(small.RUNNERS["sft"], small.make_job("sft", tmp_path, tmp_path), small.ignore)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["checkpoint-10", "checkpoint-12"]
    newest = newest_complete(tmp_path / "checkpoints", PREFIX)
    assert newest == (12, tmp_path / "checkpoints" / "checkpoint-12")
