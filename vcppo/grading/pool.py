"""Killable workers for Math-Verify: each answer has a time limit, a hanging worker is killed and replaced.

Works from any thread (no SIGALRM): main thread, thread pools, `asyncio.to_thread`, Ray workers. The limits
are wall-clock seconds for one answer; the clock starts once the worker is warm. Workers get a bare
environment, so no token of the parent reaches them.
"""

from __future__ import annotations

import atexit
import queue
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from vcppo.errors import GraderError
from vcppo.grading.process import Verdict, Worker

_WORKER_COMMAND = (sys.executable, "-m", "vcppo.grading.worker")


class GradingPool:
    """Workers that answer "is this answer equal to this gold?" for MATH.

    `timeout_seconds` is for one answer. In a batch that has already lost that much to hanging answers, the
    remaining ones get `poisoned_timeout_seconds`, so that many poisons do not hold it one after the other.
    `address_space_bytes` limits each process (RLIMIT_AS). Thread-safe; close it, or use it in a `with`.
    """

    def __init__(
        self,
        num_workers: int = 2,
        timeout_seconds: float = 1.0,
        poisoned_timeout_seconds: float = 0.25,
        address_space_bytes: int = 2 * 1024**3,
        startup_seconds: float = 120.0,
        worker_command: Sequence[str] = _WORKER_COMMAND,
    ) -> None:
        if num_workers < 1 or timeout_seconds <= 0:
            raise ValueError(
                f"num_workers and timeout_seconds must be positive, got {num_workers}, {timeout_seconds}"
            )
        self.timeout_seconds = timeout_seconds
        self._poisoned_timeout_seconds = min(poisoned_timeout_seconds, timeout_seconds)
        self._startup_seconds = startup_seconds
        self._workers = [Worker(worker_command, address_space_bytes) for _ in range(num_workers)]
        self._free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(num_workers, thread_name_prefix="grading")
        self._closed = False

    def ask_all(self, questions: Sequence[tuple[str | None, str]]) -> list[Verdict]:
        """Verdicts on `(answer, gold)` pairs, in order; an answer of None asks whether the gold can be read.

        Raises GraderError when workers cannot be started or the pool is closed.
        """
        if self._closed:
            raise GraderError("the grading pool is closed; make a new one")
        lost = _LostTime()
        return list(self._threads.map(lambda question: self._ask(question, lost), questions))

    def _ask(self, question: tuple[str | None, str], lost: _LostTime) -> Verdict:
        worker = self._free.get()
        try:
            worker.warm(self._startup_seconds)
            poisoned = lost.seconds >= self._poisoned_timeout_seconds
            limit = self._poisoned_timeout_seconds if poisoned else self.timeout_seconds
            verdict = worker.ask(*question, limit)
            if verdict.kind == "timeout":
                lost.add(limit)
            return verdict
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End all workers; questions under way end as grader errors."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def __enter__(self) -> GradingPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _LostTime:
    """Seconds that one batch lost to hanging answers."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        with self._lock:
            self.seconds += seconds


_shared: GradingPool | None = None
_shared_lock = threading.Lock()


def shared_pool() -> GradingPool:
    """The pool of this process, started at first use and closed at exit."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = GradingPool()
            atexit.register(_shared.close)
        return _shared
