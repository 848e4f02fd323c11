"""Shows the lines for a person out of the trainer's log while it is being written."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

SHOWN_PREFIXES = ("START", "STEP", "GUARD")
POLL_SECONDS = 0.5
TAIL_LINES = 30


class LogFollower:
    """A context in which new lines of `path` that begin with START, STEP or GUARD are printed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = path.stat().st_size if path.is_file() else 0
        self._rest = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._show_new()

    def show_tail(self) -> None:
        """Print the last lines as they are: the trainer has failed and they say why."""
        if self.path.is_file():
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
            print(f"[train] last lines of {self.path}:")
            print("\n".join(f"    {line}" for line in lines[-TAIL_LINES:]), flush=True)

    def _follow(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            self._show_new()

    def _show_new(self) -> None:
        if not self.path.is_file():
            return
        with self.path.open(encoding="utf-8", errors="replace") as stream:
            stream.seek(self._position)
            text = self._rest + stream.read()
            self._position = stream.tell()
        *lines, self._rest = text.split("\n")
        for line in lines:
            if line.startswith(SHOWN_PREFIXES):
                print(f"[train] {line}", flush=True)
