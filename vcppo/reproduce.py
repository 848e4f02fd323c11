"""`dvc repro` in a process group of its own: its lines to a callback, its failures as our exceptions.

DVC decides what runs and what is skipped. It passes no exit code on, so a stage leaves its failure record in
a file; a stage that leaves none was killed. A busy DVC lock is waited for with growing pauses.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from vcppo.errors import ConfigurationError, InfrastructureError, LeaseHeldError, VcppoError, known_error
from vcppo.pipeline import MAIN
from vcppo.processes import FAILURE_FILE, end_group, start_group

HINTS = (
    "To track the changes with git",
    "\tgit add ",
    "To enable auto staging",
    "\tdvc config core.autostage",
    "Use `dvc push`",
)
"""What DVC tells a person at its own command line; in a log of ours it misleads."""
BUSY = ("is busy", "Unable to acquire lock", "another process")
LOCK_WAITS_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
DRAIN_SECONDS = 5.0
"""How long after DVC's end its pipe is still read, should an orphan hold it open."""
END_SECONDS = 10.0
"""How long what is left of the group has to end by itself before it is killed."""
TICK_SECONDS = 1.0
TAIL_LINES = 15


def reproduce(
    workspace: Path,
    stage: str | None = None,
    *,
    file: str = MAIN,
    on_line: Callable[[str], None] = print,
    on_tick: Callable[[int], None] = lambda process_id: None,
    environment: Mapping[str, str] | None = None,
    lock_waits_seconds: tuple[float, ...] = LOCK_WAITS_SECONDS,
) -> None:
    """Bring one stage of a workspace up to date, or with None the whole pipeline of `file` and what it needs.

    on_line: called with each line that DVC and the stages write. on_tick: called about once a second with
    DVC's process id. environment: variables for the stages, on top of this process's. Whatever ends this call
    early (an exception, Ctrl-C) ends DVC and the stage with it.

    Raises the VcppoError that the stage raised, InfrastructureError if stage or DVC was killed,
    LeaseHeldError if another DVC holds the workspace, ConfigurationError if DVC itself refuses.
    """
    for wait in (*lock_waits_seconds, None):
        with tempfile.TemporaryDirectory(prefix="vcppo-") as scratch:
            failure_file = Path(scratch) / "failure.json"
            variables = {**stage_environment(), **(environment or {}), FAILURE_FILE: str(failure_file)}
            code, tail = _run(_command(stage, file), workspace, variables, on_line, on_tick)
            if code == 0:
                return
            error = _error(stage, code, tail, failure_file)
        if not isinstance(error, LeaseHeldError) or wait is None:
            raise error
        on_line(f"the workspace or the run is in use; trying again in {wait:g} s")
        time.sleep(wait)


def stage_environment() -> dict[str, str]:
    """This process's variables with this Python first on the path, and no word home from DVC."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "DVC_NO_ANALYTICS": "1", "PYTHONUNBUFFERED": "1"}


def _command(stage: str | None, file: str) -> list[str]:
    target = f"{file}:{stage}" if stage else file
    # -P: a room of the checkout must not shadow a package that DVC imports
    return [sys.executable, "-P", "-m", "dvc", "repro", *(["--single-item"] if stage else []), target]


def _run(
    command: list[str],
    workspace: Path,
    variables: Mapping[str, str],
    on_line: Callable[[str], None],
    on_tick: Callable[[int], None],
) -> tuple[int, list[str]]:
    """Exit code of the command and its last lines."""
    process = start_group(command, cwd=workspace, env=variables, stdout=subprocess.PIPE)
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    try:
        for line in _lines(process, on_tick):
            tail.append(line)
            on_line(line)
        return process.wait(), list(tail)
    finally:
        end_group(process.pid, grace_seconds=END_SECONDS)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _lines(process: subprocess.Popen[bytes], on_tick: Callable[[int], None]) -> Iterator[str]:
    """Lines of a process as they come, until its pipe closes, or soon after its end."""
    assert process.stdout is not None
    rest, ticked, ended = b"", time.monotonic(), 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(timeout=TICK_SECONDS):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                *whole, rest = re.split(rb"[\r\n]+", rest + piece)
                yield from filter(_worth_showing, (line.decode(errors="replace") for line in whole))
            now = time.monotonic()
            if now - ticked >= TICK_SECONDS:
                ticked = now
                on_tick(process.pid)
            if process.poll() is not None:
                ended = ended or now
                if now - ended > DRAIN_SECONDS:
                    break
    if rest:
        yield rest.decode(errors="replace")


def _worth_showing(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(HINTS)


def _error(stage: str | None, code: int, tail: list[str], failure_file: Path) -> VcppoError:
    """What went wrong, from the stage's failure record, else from how the processes ended."""
    what = f"stage {stage}" if stage else "the pipeline"
    text = "\n".join(tail)
    if failure_file.is_file():
        failure = json.loads(failure_file.read_text(encoding="utf-8"))
        return known_error(failure) or VcppoError(f"{what}: {failure['class']}: {failure['message']}\n{text}")
    if code < 0:
        return InfrastructureError(f"{what}: dvc repro was killed by {_signal_name(-code)}")
    if any(word in text for word in BUSY):
        return LeaseHeldError(f"{what}: another dvc works in this workspace; wait for it, or end it\n{text}")
    ended = re.search(r"exited with (-?\d+)", text)
    if ended:
        return _ended(what, int(ended.group(1)), text)
    return ConfigurationError(f"{what}: dvc repro refused (exit code {code}):\n{text}")


def _ended(what: str, code: int, text: str) -> VcppoError:
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        return InfrastructureError(
            f"{what}: was killed by {_signal_name(number)}; run again to go on\n{text}"
        )
    return VcppoError(f"{what}: ended with exit code {code} and no failure record\n{text}")


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
