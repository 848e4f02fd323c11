"""The work directory of a stage: `work/STAGE/FINGERPRINT/`, one live process at a time (DESIGN: a run, its
attempts).

A retry finds its own fingerprint and goes on; a changed parameter, input or code starts anew; nothing of
another configuration can be resumed by mistake. Layout:

    lock                 flock of the live process: attempt number and process id
    layout.json          workers, threads and micro-batch of the first attempt (they are part of the bits)
    attempts/N.log, N.json   output and outcome of attempt N
    out/                 finished outputs before they are published
    finished.json        the body has run to its end; publishing may be repeated
    published            everything has been published and the directory is kept only to look at; the stage
                         run again starts anew in its place
    ...                  whatever the stage keeps to resume from
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from vcppo.errors import CheckpointError, LeaseHeldError, StorageError
from vcppo.files import remove, sha256_json, write_json_atomic


def fingerprint(stage: str, parameters: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """16 hex digits of the hash of what identifies a stage's result: its parameters and its inputs' hashes
    (the code files it depends on are inputs too)."""
    return sha256_json({"stage": stage, "parameters": dict(parameters), "inputs": dict(inputs)})[:16]


@dataclass
class WorkDirectory:
    """An opened (leased) work directory."""

    path: Path
    attempt: int
    _lock: TextIOWrapper = field(repr=False)
    replaced: bool = False
    """It held a kept result that was published before; that one is gone."""

    @property
    def out(self) -> Path:
        return self.path / "out"

    @property
    def finished(self) -> bool:
        return (self.path / "finished.json").is_file()

    def mark_finished(self, result: Mapping[str, Any]) -> None:
        write_json_atomic(self.path / "finished.json", dict(result))

    def mark_published(self) -> None:
        """For a directory that stays although nothing is left to resume."""
        (self.path / _PUBLISHED).touch()

    def result(self) -> dict[str, Any]:
        return json.loads((self.path / "finished.json").read_text(encoding="utf-8"))

    def log_path(self) -> Path:
        return self.path / "attempts" / f"{self.attempt}.log"

    def write_outcome(self, outcome: Mapping[str, Any]) -> None:
        write_json_atomic(self.path / "attempts" / f"{self.attempt}.json", dict(outcome))

    def attempts(self) -> list[dict[str, Any]]:
        """Outcome of each attempt so far; one that was killed left none and is reported as `killed`."""
        outcomes = []
        for number in range(1, self.attempt + 1):
            path = self.path / "attempts" / f"{number}.json"
            if path.is_file():
                outcomes.append(json.loads(path.read_text(encoding="utf-8")))
            elif number < self.attempt:
                outcomes.append({"attempt": number, "outcome": "killed"})
        return outcomes

    def close(self) -> None:
        """Give the lease back."""
        self._lock.close()

    def discard(self) -> None:
        """Remove the directory. It is renamed first: killed in the middle, no half of it is ever resumed."""
        doomed = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}{_DISCARDED}")
        self.path.replace(doomed)
        remove(doomed)


def open_work_directory(
    root: Path, stage: str, print_: str, layout: Mapping[str, Any], *, allow_layout_change: bool = False
) -> WorkDirectory:
    """Lease `root/stage/print_`, creating it if it is new or kept from a run that was published, and count
    one attempt more.

    Raises LeaseHeldError while another process works there, CheckpointError if it was begun with another
    number of workers, threads or micro-batch size (resuming would give other bits) and `allow_layout_change`
    is not set.
    """
    path = root / stage / print_
    lock = _lease(path)
    try:
        for doomed in path.parent.glob(f".*{_DISCARDED}"):
            shutil.rmtree(doomed, ignore_errors=True)  # another process may be removing its own right now
        replaced = (path / _PUBLISHED).is_file()
        if replaced:
            _empty(path)
        _check_layout(path, layout, allow_layout_change)
        (path / "attempts").mkdir(exist_ok=True)
        attempt = 1 + max((int(p.stem) for p in (path / "attempts").glob("*.log")), default=0)
        (path / "attempts" / f"{attempt}.log").touch()
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, attempt {attempt}\n")
        lock.flush()
    except BaseException:
        lock.close()
        raise
    return WorkDirectory(path, attempt, lock, replaced)


_DISCARDED = ".discarded"
LEASE_ATTEMPTS = 1000
"""A directory that others discard is found anew after a few; one that cannot be made never is."""
_PUBLISHED = "published"


def _empty(path: Path) -> None:
    # the mark goes last: killed in the middle, the next one goes on emptying; the lock is ours
    for entry in path.iterdir():
        if entry.name not in ("lock", _PUBLISHED):
            remove(entry)
    (path / _PUBLISHED).unlink()


def _lease(path: Path) -> TextIOWrapper:
    """The flock of a work directory that still stands at `path` (its holder removes it when it has
    published)."""
    for _ in range(LEASE_ATTEMPTS):
        try:
            _make_directory(path)
            lock = lock_file(path / "lock", f"{path}: another process works on this run")
        except FileNotFoundError:
            continue  # discarded between mkdir and open
        with contextlib.suppress(FileNotFoundError):
            if (path / "lock").stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        lock.close()
    raise StorageError(
        f"{path}: cannot be made, or vanishes at once; check that its parents exist (a link to a disk that "
        "is not mounted?), or set VCPPO_STORAGE_DIR to another place"
    )


def _make_directory(path: Path) -> None:
    """As mkdir(parents, exist_ok), which calls a directory that vanishes between its two looks "existing".

    Raises FileNotFoundError when it vanished, FileExistsError when something else stands there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        if path.exists() and not path.is_dir():
            raise
        raise FileNotFoundError(f"{path}: removed while it was being made") from None


def lock_file(path: Path, who: str) -> TextIOWrapper:
    """Lock `path` for this process until the stream is closed or the process ends, however it ends.

    Raises LeaseHeldError, `who` and the holder's own line in its message, while another process has it.
    """
    # "a+": the holder's line stays readable for whoever comes second
    lock = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise LeaseHeldError(f"{who} ({holder}); wait for it, or end it, then run again") from None
    return lock


def is_locked(path: Path) -> bool:
    """Whether a live process holds the lock file."""
    try:
        lock_file(path, "").close()
    except LeaseHeldError:
        return True
    return False


def _check_layout(path: Path, layout: Mapping[str, Any], allow_change: bool) -> None:
    known = path / "layout.json"
    if known.is_file() and not allow_change:
        before = json.loads(known.read_text(encoding="utf-8"))
        changed = {k: (before.get(k), v) for k, v in layout.items() if before.get(k) != v}
        if changed:
            words = ", ".join(f"{k} was {old!r} and is {new!r}" for k, (old, new) in changed.items())
            raise CheckpointError(
                f"{path}: begun with another layout: {words}. The resumed run would give other bits: restore "
                "the old values, remove the directory to start anew, or set VCPPO_ALLOW_LAYOUT_CHANGE=1"
            )
    write_json_atomic(known, dict(layout))
