"""Killable workers for Math-Verify: each answer has a time limit, a hanging worker is killed and replaced.

Works from any thread (no SIGALRM): main thread, thread pools, `asyncio.to_thread`, Ray workers. The limits
are wall-clock seconds for one answer; the clock starts once the worker is warm. Workers get a bare
environment, so no token of the parent reaches them.
"""

from __future__ import annotations

import atexit
import math
import queue
import re
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from vcppo.errors import GraderError
from vcppo.grading.process import Verdict, Worker

_WORKER_COMMAND = (sys.executable, "-m", "vcppo.grading.worker")


_PATIENCE = ((0.65, 1.0), (0.8, 0.25), (1.0, 0.05))
"""How long one answer may take: up to which share of the batch's time is lost, which share of the limit."""
_COSTLY = re.compile(r"\^|!|\*\*|\\(?:sum|prod|int|lim|binom|sqrt|log|ln|exp|sin|cos|tan)")


class GradingPool:
    """Workers that answer "is this answer equal to this gold?" for MATH.

    `timeout_seconds` is for one answer; an ordinary one takes milliseconds. A batch loses no more than
    `batch_seconds` to answers that exceed their limit, however many there are: the limit falls as that time
    is used up, and what is open at its end gets no verdict. The plainest answers are asked first, so that it
    is the suspicious ones that may lose theirs. `address_space_bytes` limits each process (RLIMIT_AS).
    Thread-safe; close it, or use it in a `with`.
    """

    def __init__(
        self,
        num_workers: int = 2,
        timeout_seconds: float = 1.0,
        batch_seconds: float = 1.2,
        address_space_bytes: int = 2 * 1024**3,
        startup_seconds: float = 120.0,
        worker_command: Sequence[str] = _WORKER_COMMAND,
    ) -> None:
        if num_workers < 1 or min(timeout_seconds, batch_seconds) <= 0:
            raise ValueError(
                "num_workers, timeout_seconds and batch_seconds must be positive, got "
                f"{num_workers}, {timeout_seconds}, {batch_seconds}"
            )
        self.timeout_seconds = timeout_seconds
        self._batch_seconds = batch_seconds
        self._startup_seconds = startup_seconds
        self._workers = [Worker(worker_command, address_space_bytes) for _ in range(num_workers)]
        self._free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(num_workers, thread_name_prefix="grading")
        self._closed = False

    def ask_all(self, questions: Sequence[tuple[str | None, str]], patience: float = 1.0) -> list[Verdict]:
        """Verdicts on `(answer, gold)` pairs, in order; an answer of None asks whether the gold can be read.

        patience: times the pool's limits; more than 1 for what no policy wrote, where a busy machine must not
        decide.

        Raises GraderError when workers cannot be started or the pool is closed.
        """
        if self._closed:
            raise GraderError("the grading pool is closed; make a new one")
        lost = _LostTime(len(self._workers))
        order = sorted(range(len(questions)), key=lambda place: _suspicion(*questions[place]))
        asked = self._threads.map(lambda place: self._ask(questions[place], lost, patience), order)
        verdicts = dict(zip(order, asked, strict=True))
        return [verdicts[place] for place in range(len(questions))]

    def _ask(self, question: tuple[str | None, str], lost: _LostTime, patience: float) -> Verdict:
        worker = self._free.get()
        try:
            budget = patience * self._batch_seconds
            left, used = budget - lost.seconds, lost.seconds / budget
            share = next((share for until, share in _PATIENCE if used < until), None)
            if share is None:
                return _GIVEN_UP
            worker.warm(self._startup_seconds)
            started = time.monotonic()
            # who is kept from the processors may take longer, until the batch has lost time to anybody
            most = left if lost.seconds else math.inf
            verdict = worker.ask(*question, min(share * patience * self.timeout_seconds, left), most)
            if verdict.kind == "timeout":
                lost.add(time.monotonic() - started)
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


_GIVEN_UP = Verdict(error="no verdict: slow answers used up the time of their batch", kind="timeout")


class _LostTime:
    """Seconds by which answers that exceeded their limit prolonged one batch."""

    def __init__(self, num_workers: int) -> None:
        self.seconds = 0.0
        self._num_workers = num_workers
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count one worker's loss."""
        with self._lock:
            self.seconds += seconds / self._num_workers


def _suspicion(answer: str | None, gold: str) -> tuple[int, int]:
    """Sorts plain answers before those that may take long: by operations that can explode, then by length."""
    text = gold if answer is None else answer
    return len(_COSTLY.findall(text)), len(text)


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
