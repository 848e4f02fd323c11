"""Child processes that do not outlive us: a session of their own, the kernel's parent-death signal, and an
end for the whole tree.

A killed DVC leaves its stage running, and the next one would run beside it (treeverse/dvc#2804, #5795). So
whoever starts DVC starts it with `start_group`, and the stage itself calls `die_with_parent`: the death of
either ends both.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

PARENT = "VCPPO_PARENT"
"""Environment variable: process id of the DVC that starts the stage, set by `start_group`."""
FAILURE_FILE = "VCPPO_FAILURE_FILE"
"""Environment variable: where a stage leaves its failure record for whoever started DVC, which passes no exit
code on."""
PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGTERM when the process that started us ends; exit at once if `parent` has ended
    already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(f"process {parent}, which started this one, has ended")


def leave_failure(record: Mapping[str, object]) -> None:
    """Write a failure record where whoever started us looks for it; nowhere if nobody does."""
    if path := os.environ.get(FAILURE_FILE):
        Path(path).write_text(json.dumps(dict(record)), encoding="utf-8")


def start_group(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a session and process group of its own, stderr with stdout, stdin
    empty.

    It gets SIGTERM when the calling thread ends, so the thread that starts it must be the one that waits for
    it.
    """
    # a script that executes the command, not preexec_fn: that one may deadlock in a process with threads
    launcher = [sys.executable, "-I", __file__, str(os.getpid()), *command]
    return subprocess.Popen(
        launcher,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def end_group(leader: int, *, grace_seconds: float) -> None:
    """End a process group and all descendants of its leader, even those in sessions of their own: SIGTERM,
    and SIGKILL to what is left after the grace."""
    import psutil

    processes = [p for p in psutil.process_iter() if _group(p.pid) == leader]
    with contextlib.suppress(psutil.NoSuchProcess):
        processes += psutil.Process(leader).children(recursive=True)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()  # psutil checks that the id still means the same process
    _, alive = psutil.wait_procs(processes, timeout=grace_seconds)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=grace_seconds)


def _group(process_id: int) -> int | None:
    try:
        return os.getpgid(process_id)
    except ProcessLookupError:
        return None


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.environ[PARENT] = str(os.getpid())
    os.execvp(sys.argv[2], sys.argv[2:])
