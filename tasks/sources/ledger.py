"""What became of every row that a source gave: the book-keeping behind the dataset card."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Ledger:
    """One source's rows: how many came in, how many went out for which reason, and those a person should see.

    rows_in is the sum of `removed` and of the rows that are kept.
    """

    rows_in: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    listed: list[dict[str, Any]] = field(default_factory=list)
    """Removals with their particulars (ids, golds, ...); repeats of one row are only counted."""

    def remove(self, reason: str, rows: int = 1, **particulars: Any) -> None:
        """Count rows as removed; particulars, if any, list them too."""
        self.removed[reason] += rows
        if particulars:
            self.listed.append({"reason": reason, **particulars})

    def kept(self) -> int:
        return self.rows_in - self.removed.total()
