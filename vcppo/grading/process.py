"""One worker process of the pool, as its owner sees it: start, ask, kill, replace."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vcppo.errors import GraderError

_ROOT = Path(__file__).resolve().parents[2]
_STARVED_FACTOR = 4  # times the limit that a child may take on a machine whose processors others hold


@dataclass(frozen=True)
class Verdict:
    """Reply to one question: `same`, or an `error` of the `kind` gold, timeout or grader."""

    same: bool = False
    error: str = ""
    kind: str = ""


class _TimedOut(Exception):
    """No reply within the limit."""


class _Died(Exception):
    """The worker process ended."""


class Worker:
    """One outer process and the grading child that it keeps alive."""

    def __init__(self, command: Sequence[str], address_space_bytes: int) -> None:
        self._command = (*command, str(address_space_bytes))
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._ids = itertools.count(1)
        self._cpu_before = 0.0
        self.child: int | None = None  # the pid of a warm grading child

    def start(self) -> None:
        """Start the outer process; `warm` waits for it."""
        self.close()
        keep = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "HOME") if name in os.environ}
        environment = keep | {"PYTHONPATH": str(_ROOT), "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        self._buffer, self.child = b"", None

    def _wait_for_child(self, timeout_seconds: float) -> None:
        try:
            while self.child is None:
                self.child = self._next_ready(timeout_seconds)
        except _Died:  # it was ended, and not reaped yet when we looked: a new one may live
            self.start()
            while self.child is None:
                self.child = self._next_ready(timeout_seconds)

    def warm(self, timeout_seconds: float) -> None:
        """Wait until a grading child is ready, starting the process if there is none. Raises GraderError."""
        if self._process is None or self._process.poll() is not None:
            self.start()
        try:
            self._wait_for_child(timeout_seconds)
        except (_TimedOut, _Died) as error:
            self.close()
            raise GraderError(
                f"grading worker did not come up ({_reason(error)} within {timeout_seconds:g} s). "
                "Check that math_verify can be imported in this environment and that memory is left."
            ) from None

    def ask(
        self, answer: str | None, gold: str, timeout_seconds: float, most_seconds: float = math.inf
    ) -> Verdict:
        """Send one question to a warm worker; a child that takes too long is killed and replaced.

        A child that others keep from the processors gets more than `timeout_seconds`, up to `most_seconds`.
        """
        number = next(self._ids)
        assert self._process is not None and self._process.stdin is not None
        try:
            request = json.dumps({"id": number, "answer": answer, "gold": gold}).encode() + b"\n"
            self._cpu_before = _cpu_seconds(self.child)[1] if self.child is not None else 0.0
            self._process.stdin.write(request)
            message = self._reply(timeout_seconds, most_seconds)
        except _TimedOut:
            self._kill_child()
            return Verdict(error=f"no verdict within {timeout_seconds:g} s; worker replaced", kind="timeout")
        except (_Died, BrokenPipeError):
            self.close()
            return Verdict(error="worker process died; replaced", kind="grader")
        if message.get("id") != number:
            self.child = _ready_child(message)  # the child died on this question and the next one is up
            return Verdict(error="worker ended on this answer (memory or crash); replaced", kind="grader")
        return Verdict(bool(message.get("same")), str(message.get("error", "")), str(message.get("kind", "")))

    def _reply(self, timeout_seconds: float, most_seconds: float) -> dict[str, object]:
        started = time.monotonic()
        for attempt in range(1, _STARVED_FACTOR + 1):
            allowed = min(attempt * timeout_seconds, most_seconds)
            try:
                return self._next_message(started + allowed)
            except _TimedOut:
                starved = self.child is not None and _is_starved(
                    self.child, timeout_seconds / 2, self._cpu_before
                )
                if allowed == most_seconds or not starved:
                    raise
        raise _TimedOut

    def _kill_child(self) -> None:
        """End the child; `warm` waits for the next one, which drops a reply that is still on its way."""
        child, self.child = self.child, None
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def _next_ready(self, timeout_seconds: float) -> int | None:
        return _ready_child(self._next_message(time.monotonic() + timeout_seconds))

    def _next_message(self, deadline: float) -> dict[str, object]:
        assert self._process is not None and self._process.stdout is not None
        output = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            poller = select.poll()  # not select.select, which fails for descriptors above 1023
            poller.register(output, select.POLLIN | select.POLLHUP)
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise _TimedOut
            piece = os.read(output, 65_536)
            if not piece:
                raise _Died
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, object] = json.loads(line)
        return message

    def close(self) -> None:
        """End both processes."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()  # the child dies with it (parent-death signal)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        self.child = None


def _reason(error: Exception) -> str:
    return "it died" if isinstance(error, _Died) else "no sign of it"


def _ready_child(message: dict[str, object]) -> int | None:
    child = message.get("ready")
    return child if isinstance(child, int) else None


def _cpu_seconds(pid: int) -> tuple[str, float]:
    """State letter and CPU seconds of a process, from /proc; ("?", inf) when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "?", float("inf")
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_starved(pid: int, cpu_seconds: float, cpu_before: float) -> bool:
    """Whether the process could run but got less than `cpu_seconds` of a processor since `cpu_before`."""
    state, used = _cpu_seconds(pid)
    return state in "RD" and used - cpu_before < cpu_seconds
