"""`dvc repro` from Python: lines as they come, errors as the stage raised them, nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.toy import make_checkout, working_in
from vcppo.errors import ConfigurationError, InfrastructureError, LeaseHeldError, VcppoError
from vcppo.reproduce import reproduce

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout")


@pytest.fixture
def trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "trouble"
    folder.mkdir()
    monkeypatch.setenv("TOY_TROUBLE", str(folder))
    return folder


def test_lines_come_without_dvcs_hints_and_the_stages_get_the_variables(checkout: Path) -> None:
    lines: list[str] = []
    reproduce(checkout, on_line=lines.append, environment={"VCPPO_FLOW_RUN": "nightly/a"})
    assert "[train] from step 0" in lines and "Running stage 'report':" in lines
    assert not [line for line in lines if "git add" in line or "autostage" in line or not line.strip()]
    assert '"flow_run": "nightly/a"' in (checkout / "records" / "train.json").read_text()


def test_a_single_stage_leaves_what_is_above_it_alone(checkout: Path) -> None:
    reproduce(checkout, "prepare", on_line=lambda line: None)
    assert (checkout / "records" / "prepare.json").is_file() and not (checkout / "models").exists()


def test_the_stages_own_error_comes_back_with_its_class_and_message(checkout: Path, trouble: Path) -> None:
    (trouble / "configuration").touch()
    with pytest.raises(ConfigurationError, match=r"^train\.num_steps: got a toy value, allowed is another$"):
        reproduce(checkout, on_line=lambda line: None)


def test_a_mistake_in_a_stage_is_named_and_not_retryable(checkout: Path) -> None:
    (checkout / "tasks" / "prepare.py").write_text("def run(context):\n    return 1 / 0\n")
    with pytest.raises(VcppoError, match="stage prepare: ZeroDivisionError: division by zero") as caught:
        reproduce(checkout, "prepare", on_line=lambda line: None)
    assert not caught.value.retryable


def test_a_killed_stage_is_an_infrastructure_error(checkout: Path, trouble: Path) -> None:
    (trouble / "kill").touch()
    with pytest.raises(InfrastructureError, match="was killed by SIGKILL; run again to go on"):
        reproduce(checkout, on_line=lambda line: None)


def test_a_killed_dvc_is_an_infrastructure_error_and_its_stage_ends_too(
    checkout: Path, trouble: Path
) -> None:
    (trouble / "wait").touch()
    ticks: list[int] = []

    def kill_dvc(line: str) -> None:
        if "from step 0" in line:
            (parent,) = [p for p in working_in(checkout) if "dvc" in p.cmdline()]
            parent.send_signal(signal.SIGKILL)

    with pytest.raises(InfrastructureError, match="dvc repro was killed by SIGKILL"):
        reproduce(checkout, on_line=kill_dvc, on_tick=ticks.append)
    assert working_in(checkout) == []


def test_an_exception_in_the_caller_ends_dvc_and_the_stage(checkout: Path, trouble: Path) -> None:
    (trouble / "wait").touch()

    def interrupt(process_id: int) -> None:
        if any(p.cmdline()[-1:] == ["train"] for p in psutil.Process(process_id).children()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(checkout, on_line=lambda line: None, on_tick=interrupt)
    assert working_in(checkout) == []


def test_the_death_of_the_caller_ends_dvc_and_the_stage(checkout: Path, trouble: Path) -> None:
    (trouble / "wait").touch()
    program = (
        "import sys; from pathlib import Path; from vcppo.reproduce import reproduce\n"
        "reproduce(Path(sys.argv[1]))\n"
    )
    caller = subprocess.Popen(
        [sys.executable, "-u", "-c", program, str(checkout)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert caller.stdout
    for line in caller.stdout:
        if "from step 0" in line:
            break
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    deadline = time.monotonic() + 30
    while working_in(checkout):
        assert time.monotonic() < deadline, working_in(checkout)
        time.sleep(0.05)


def test_a_workspace_in_use_is_waited_for_and_then_named(checkout: Path, trouble: Path) -> None:
    (trouble / "wait").touch()
    seen: list[str] = []

    def second(line: str) -> None:
        if "from step 0" in line:
            with pytest.raises(LeaseHeldError, match="another dvc works in this workspace"):
                reproduce(checkout, "train", on_line=seen.append, lock_waits_seconds=(0.1,))
            (trouble / "wait").unlink()

    reproduce(checkout, on_line=second)
    assert [line for line in seen if "trying again in 0.1 s" in line]


def test_what_dvc_itself_refuses_is_a_configuration_error_with_its_words(checkout: Path) -> None:
    (checkout / "dvc.yaml").write_text("stages: {b: {cmd: 'true'}}")
    with pytest.raises(ConfigurationError, match=r"stage a: dvc repro refused(?s:.)*'a' not found"):
        reproduce(checkout, "a", on_line=lambda line: None)


def test_lines_are_read_although_an_orphan_holds_the_pipe(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "tasks" / "prepare.py").write_text(
        "import subprocess\n"
        "def run(context):\n"
        "    context.out('data/prepared').mkdir()\n"
        "    subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "    return {}\n"
    )
    lines: list[Any] = []
    monkeypatch.setattr("vcppo.reproduce.DRAIN_SECONDS", 0.5)
    monkeypatch.setattr("vcppo.reproduce.END_SECONDS", 0.5)
    reproduce(checkout, "prepare", on_line=lines.append)
    for process in working_in(checkout):
        process.kill()
    assert "Running stage 'prepare':" in lines
