"""The stage runner through real `dvc repro` on a toy pipeline: skipped, killed, resumed, recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.toy import environment, git, make_checkout, python, set_param

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout")


@pytest.fixture
def trouble(tmp_path: Path) -> Path:
    folder = tmp_path / "trouble"
    folder.mkdir()
    return folder


def repro(checkout: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return python(checkout, "-m", "dvc", "repro", *arguments, **more)


def record(checkout: Path, stage: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((checkout / "records" / f"{stage}.json").read_text())
    return values


def until(condition: Callable[[], Any]) -> Any:
    """Wait for a condition, at most a minute."""
    deadline = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited a minute in vain"
        time.sleep(0.02)
    return value


def step_two(checkout: Path) -> list[Path]:
    """The checkpoint of a training that waits at step 2."""
    return [
        p for p in checkout.glob("work/train/*/checkpoint.json") if json.loads(p.read_text())["step"] == 2
    ]


@pytest.fixture
def waiting(checkout: Path, trouble: Path) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """`dvc repro` whose train stage waits after its second step, and that stage's process."""
    (trouble / "wait").touch()
    dvc = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro"],
        cwd=checkout,
        env=environment(TOY_TROUBLE=str(trouble)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: step_two(checkout))
        stage = next(p for p in psutil.Process(dvc.pid).children() if p.cmdline()[-1:] == ["train"])
        yield dvc, stage
    finally:
        (trouble / "wait").unlink(missing_ok=True)
        dvc.kill()
        dvc.wait()


def test_a_second_repro_skips_all_and_a_changed_parameter_reruns_only_what_follows(checkout: Path) -> None:
    first = repro(checkout)
    assert first.returncode == 0, first.stderr
    before = {name: record(checkout, name) for name in ("prepare", "train", "evaluate", "report")}
    assert not list((checkout / "work").glob("*/*")), "a finished stage keeps no work directory"

    second = repro(checkout)
    assert second.stdout.count("didn't change, skipping") == 4

    set_param(checkout, "lam_actor: 0.95", "lam_actor: 0.9")
    third = repro(checkout)
    assert third.returncode == 0, third.stderr
    assert "Running stage 'train'" in third.stdout and "Running stage 'prepare'" not in third.stdout
    assert "Running stage 'evaluate'" in third.stdout
    assert "Stage 'report' didn't change" in third.stdout  # the toy evaluation gives the same table
    assert record(checkout, "prepare") == before["prepare"]
    changed = record(checkout, "train")
    assert changed["fingerprint"] != before["train"]["fingerprint"]
    assert changed["parameters"]["train.gae.lam_actor"] == 0.9


def test_a_record_says_what_was_made_from_what(checkout: Path) -> None:
    assert repro(checkout, "train", VCPPO_FLOW_RUN="nightly/a/b").returncode == 0
    train, prepare = record(checkout, "train"), record(checkout, "prepare")
    assert {a["path"] for a in train["outputs"]} == {"models/policy", "metrics/train.json"}
    inputs = {a["path"]: a for a in train["inputs"]}
    outputs = {a["path"]: a for a in prepare["outputs"]}
    assert inputs["data/prepared"]["sha256"] == outputs["data/prepared"]["sha256"]
    assert inputs["tasks/train.py"]["kind"] == "code" and inputs["data/prepared"]["kind"] == "data"
    assert [a["path"] for a in prepare["inputs"] if a["kind"] == "source"] == ["source.txt"]
    assert train["code"] == {"commit": git(checkout, "rev-parse", "HEAD"), "dirty": False}
    assert train["parameters"] == {"seed": 1, "train.num_steps": 15, "train.gae.lam_actor": 0.95}
    assert train["configuration"]["train"]["num_steps"] == 15 and train["runtime"]["device"] == "cpu"
    assert train["metrics"] == {"steps": 15, "began_at": 0}
    assert [a["outcome"] for a in train["attempts"]] == ["succeeded"]
    assert train["flow_run"] == "nightly/a/b"


def test_a_stage_killed_at_step_two_goes_on_there_and_its_record_counts_both_attempts(
    checkout: Path, trouble: Path
) -> None:
    (trouble / "kill").touch()
    killed = repro(checkout, "train", TOY_TROUBLE=str(trouble))
    assert killed.returncode != 0
    (work,) = (checkout / "work" / "train").iterdir()
    log = until(lambda: (work / "attempts" / "1.log").read_text())
    assert log.startswith("[train] from step 0")
    assert not (work / "attempts" / "1.json").exists() and not (checkout / "models" / "policy").exists()

    again = repro(checkout, "train", TOY_TROUBLE=str(trouble))
    assert again.returncode == 0, again.stderr
    assert "[train] attempt 2, going on in work/train/" in again.stdout and "from step 2" in again.stdout
    train = record(checkout, "train")
    assert train["metrics"] == {"steps": 15, "began_at": 2}
    assert [a["outcome"] for a in train["attempts"]] == ["killed", "succeeded"]


def test_killing_dvc_ends_its_stage_too_and_the_next_repro_goes_on(
    checkout: Path, trouble: Path, waiting: tuple[subprocess.Popen[bytes], psutil.Process]
) -> None:
    dvc, stage = waiting
    dvc.send_signal(signal.SIGKILL)
    dvc.wait()
    until(lambda: not stage.is_running() or stage.status() == psutil.STATUS_ZOMBIE)
    (trouble / "wait").unlink()
    assert repro(checkout, "train").returncode == 0
    assert record(checkout, "train")["metrics"] == {"steps": 15, "began_at": 2}


def test_another_configuration_starts_anew_and_the_old_one_is_found_again(
    checkout: Path, trouble: Path, waiting: tuple[subprocess.Popen[bytes], psutil.Process]
) -> None:
    dvc, stage = waiting
    stage.kill()
    dvc.wait()
    (trouble / "wait").unlink()
    set_param(checkout, "num_steps: 15", "num_steps: 3")
    assert repro(checkout, "train").returncode == 0
    assert record(checkout, "train")["metrics"] == {"steps": 3, "began_at": 0}
    set_param(checkout, "num_steps: 3", "num_steps: 15")
    assert repro(checkout, "train").returncode == 0
    assert record(checkout, "train")["metrics"] == {"steps": 15, "began_at": 2}


def test_a_second_process_on_the_same_run_is_refused_with_exit_code_75(
    checkout: Path, waiting: tuple[subprocess.Popen[bytes], psutil.Process]
) -> None:
    second = python(checkout, "-m", "tasks", "train")
    assert second.returncode == 75
    assert f"another process works on this run (process {waiting[1].pid}, attempt 1)" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_stage_killed_between_publishing_two_outputs_publishes_both_again_without_working_again(
    checkout: Path,
) -> None:
    assert python(checkout, "-m", "tasks", "prepare").returncode == 0
    program = (
        "import os, signal, tasks.stage\n"
        "from tasks.train import run\n"
        "publish = tasks.stage.publish\n"
        "def die_before_the_second(staged, target, **options):\n"
        "    if str(target) == 'metrics/train.json': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    publish(staged, target, **options)\n"
        "tasks.stage.publish = die_before_the_second\n"
        "tasks.stage.run_stage('train', run)\n"
    )
    assert python(checkout, "-c", program).returncode == -signal.SIGKILL
    assert (checkout / "models" / "policy").is_dir() and not (checkout / "metrics").exists()
    again = python(checkout, "-m", "tasks", "train")
    assert again.returncode == 0, again.stderr
    assert "finished before; publishing again" in again.stdout and "from step" not in again.stdout
    assert (checkout / "models" / "policy" / "weights.json").is_file()
    assert record(checkout, "train")["metrics"]["steps"] == 15
    assert not list((checkout / "work" / "train").iterdir())


@pytest.mark.parametrize(
    ("kind", "code", "retryable"), [("ConfigurationError", 2, False), ("InfrastructureError", 8, True)]
)
def test_a_failure_leaves_its_record_its_exit_code_and_no_output(
    checkout: Path, kind: str, code: int, retryable: bool
) -> None:
    (checkout / "tasks" / "prepare.py").write_text(
        f"from vcppo.errors import {kind}\n"
        "def run(context):\n"
        "    context.out('data/prepared').mkdir()\n"
        f"    raise {kind}('what went wrong')\n"
    )
    failed = python(checkout, "-m", "tasks", "prepare")
    assert failed.returncode == code
    assert f"[prepare] {kind}: what went wrong" in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stderr
    (work,) = (checkout / "work" / "prepare").iterdir()
    outcome = json.loads((work / "attempts" / "1.json").read_text())
    assert outcome["class"] == kind and outcome["retryable"] is retryable and outcome["exit_code"] == code
    assert not (checkout / "data").exists() and not (checkout / "records").exists()
    log = until(lambda: (work / "attempts" / "1.log").read_text())
    assert log == f"[prepare] {kind}: what went wrong\n"


def test_our_own_mistakes_keep_their_traceback(checkout: Path) -> None:
    (checkout / "tasks" / "prepare.py").write_text("def run(context):\n    return 1 / 0\n")
    failed = python(checkout, "-m", "tasks", "prepare")
    assert failed.returncode == 1 and "ZeroDivisionError" in failed.stdout + failed.stderr


def test_a_stage_that_makes_less_than_it_declares_publishes_nothing(checkout: Path) -> None:
    (checkout / "tasks" / "prepare.py").write_text("def run(context):\n    return {}\n")
    failed = python(checkout, "-m", "tasks", "prepare")
    assert failed.returncode == 1
    assert "stage prepare ended without making data/prepared" in failed.stdout + failed.stderr
    assert not (checkout / "data").exists()


def test_a_missing_input_names_the_stage_that_makes_it_and_an_unknown_stage_the_known_ones(
    checkout: Path,
) -> None:
    missing = python(checkout, "-m", "tasks", "train")
    assert missing.returncode == 3
    assert "data/prepared: input of stage train is missing; stage prepare makes it" in missing.stderr
    unknown = python(checkout, "-m", "tasks", "trian")
    assert unknown.returncode == 2 and "allowed are prepare, train, evaluate, report" in unknown.stderr


def test_a_checkout_that_may_not_be_written_is_one_message_and_stays_as_it_was(checkout: Path) -> None:
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    checkout.chmod(0o555)
    try:
        done = subprocess.run(
            [*drop, sys.executable, "-m", "tasks", "prepare"],
            cwd=checkout, env=environment(), capture_output=True, text=True,
        )  # fmt: skip
    finally:
        checkout.chmod(0o755)
    assert done.returncode == 6
    assert "StorageError: work: no permission" in done.stderr and "Traceback" not in done.stderr
    assert not (checkout / "work").exists()


def test_work_directories_may_lie_on_another_file_system(checkout: Path, tmp_path: Path) -> None:
    storage = Path("/dev/shm") / f"vcppo-{os.getpid()}" if Path("/dev/shm").is_dir() else tmp_path / "storage"
    try:
        done = python(
            checkout, "-m", "tasks", "prepare", VCPPO_STORAGE_DIR=str(storage), VCPPO_KEEP_WORK="true"
        )
        assert done.returncode == 0, done.stderr
        (work,) = (storage / "prepare").iterdir()
        assert (work / "finished.json").is_file() and not (checkout / "work").exists()
        assert (checkout / "data" / "prepared" / "numbers.json").is_file()
    finally:
        subprocess.run(["rm", "-rf", str(storage)], check=True)


def test_a_forced_run_runs_again_in_place_of_the_kept_work_directory(checkout: Path) -> None:
    assert repro(checkout, "train", VCPPO_KEEP_WORK="true").returncode == 0
    (work,) = (checkout / "work" / "train").iterdir()
    assert repro(checkout, "train").stdout.count("didn't change, skipping") == 2 and work.is_dir()
    (work / "of_the_first_run").touch()

    forced = repro(checkout, "--force", "--single-item", "train", VCPPO_KEEP_WORK="true")
    assert forced.returncode == 0, forced.stderr
    assert "published before; running anew" in forced.stdout and "[train] from step 0" in forced.stdout
    assert record(checkout, "train")["metrics"] == {"steps": 15, "began_at": 0}
    assert (work / "finished.json").is_file() and not (work / "of_the_first_run").exists()

    last = repro(checkout, "--force", "--single-item", "train")
    assert last.returncode == 0 and "[train] from step 0" in last.stdout
    assert not list((checkout / "work" / "train").iterdir())
