"""Commands over a real Ray session: side by side, retried where that helps, each error its command's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from training.commands import Command, run_commands
from vcppo.config import Runtime
from vcppo.errors import DataError, InfrastructureError, VcppoError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SCRIPT = """
import os, sys
from pathlib import Path
from vcppo.errors import DataError, InfrastructureError
from tasks.stage import failure
from vcppo.processes import leave_failure
name, attempts = sys.argv[1], Path(sys.argv[1] + ".attempts")
attempts.write_text(attempts.read_text() + "x" if attempts.exists() else "x")
count = len(attempts.read_text())
print(f"{name} attempt {count}")
assert not [key for key in os.environ if key.startswith("RAY_")]
if name == "unlucky" and count == 1:
    leave_failure(failure(InfrastructureError("a node died")))
    sys.exit(9)
if name == "wrong":
    leave_failure(failure(DataError("no rows")))
    sys.exit(3)
if name == "killed":
    os.kill(os.getpid(), 9)
if name == "silent":
    sys.exit(5)
"""


def command(folder: Path, name: str) -> Command:
    return Command(name, (sys.executable, "-c", SCRIPT, name), folder, folder / "logs" / f"{name}.log")


def test_each_command_ends_with_its_own_error_and_only_what_can_help_is_tried_again(tmp_path: Path) -> None:
    names = ("fine", "unlucky", "wrong", "killed", "silent")
    ended = run_commands([command(tmp_path, name) for name in names], Runtime(retries=1), at_once=2)
    errors: dict[str, VcppoError | None] = {command.name: error for command, error in ended}

    assert sorted(errors) == sorted(names)
    assert errors["fine"] is None
    assert errors["unlucky"] is None
    assert isinstance(errors["wrong"], DataError)
    assert str(errors["wrong"]) == "wrong: no rows"
    assert isinstance(errors["killed"], InfrastructureError)
    assert "killed: was killed by signal 9; see " in str(errors["killed"])
    assert type(errors["silent"]) is VcppoError
    assert "silent: ended with exit code 5 and no failure record" in str(errors["silent"])
    attempts = {name: len((tmp_path / f"{name}.attempts").read_text()) for name in names}
    assert attempts == {"fine": 1, "unlucky": 2, "wrong": 1, "killed": 2, "silent": 1}
    assert (tmp_path / "logs" / "unlucky.log").read_text() == "unlucky attempt 1\nunlucky attempt 2\n"
