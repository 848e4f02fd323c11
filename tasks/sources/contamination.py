"""Training problems that a benchmark also holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tasks.sources.words import shingles, words

NGRAM = 8
_KNOWN_RUN = b"\1" * NGRAM


@dataclass(frozen=True)
class Overlap:
    """A training problem's closest benchmark problem."""

    benchmark_id: str
    coverage: float
    """Part of the shorter problem's eight-word shingles that both share; 1 for the same words."""


class BenchmarkIndex:
    """The problems of every benchmark, ready to be compared with."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        """problems: (id, text)."""
        self._same: dict[str, str] = {}
        self._holders: defaultdict[str, list[str]] = defaultdict(list)
        self._sizes: dict[str, int] = {}
        self._vocabulary: set[str] = set()
        for id_, text in problems:
            sequence = words(text)
            self._same.setdefault(" ".join(sequence), id_)
            # shorter problems are compared as wholes only: a few common words prove nothing
            if len(sequence) >= NGRAM:
                content = shingles(sequence, NGRAM)
                self._sizes[id_] = len(content)
                self._vocabulary.update(sequence)
                for shingle in content:
                    self._holders[shingle].append(id_)

    def overlap(self, text: str, coverage: float | None) -> Overlap | None:
        """The benchmark problem that this text repeats: the same words, or `coverage` of its shingles
        (None: no shingles are compared)."""
        sequence = words(text)
        same = self._same.get(" ".join(sequence))
        if same is not None:
            return Overlap(same, 1.0)
        if coverage is None or len(sequence) < NGRAM:
            return None
        if not self._may_share(sequence):
            return None
        content = shingles(sequence, NGRAM)
        shared = Counter(id_ for shingle in content for id_ in self._holders.get(shingle, ()))
        best = max(
            (Overlap(id_, count / min(len(content), self._sizes[id_])) for id_, count in shared.items()),
            key=lambda overlap: overlap.coverage,
            default=None,
        )
        return best if best is not None and best.coverage >= coverage else None

    def _may_share(self, sequence: list[str]) -> bool:
        """Whether any run of words is long enough and wholly known: most texts of millions have none."""
        return _KNOWN_RUN in bytes(map(self._vocabulary.__contains__, sequence))
