"""Training problems that are one problem in slightly other words.

Candidates come from MinHash signatures of word shingles (Broder 1997) in datasketch's LSH index; a
candidate counts only if the exact Jaccard index reaches the limit and numbers, operators and the gold's value
agree: "2 + 3 apples" and "2 + 4 apples" are different problems, however alike their wording.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

from tasks.sources.agreement import meant, one_value
from tasks.sources.cleaning import Gold
from tasks.sources.ledger import Ledger
from tasks.sources.words import arithmetic, shingles, words
from vcppo.config.sources import GraderName

SHINGLE = 3
NUM_PERMUTATIONS = 64

_Seen = tuple[Gold, GraderName, frozenset[str]]


def without_near_duplicates(
    placed: Mapping[str, tuple[GraderName, list[Gold]]],
    ledgers: dict[str, Ledger],
    similarity: float,
    progress: Callable[[int, int], None],
) -> dict[str, list[Gold]]:
    """Keep the first of problems that are alike. placed: grader and problems of each source, by its name; the
    earlier source keeps its own.

    Every removal is listed in its source's ledger with the problem that stays and the Jaccard index.
    """
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=similarity, num_perm=NUM_PERMUTATIONS)
    empty = MinHash(num_perm=NUM_PERMUTATIONS, seed=1, hashfunc=zlib.crc32)
    seen: list[_Seen] = []
    total = sum(len(golds) for _, golds in placed.values())
    done = 0
    kept: dict[str, list[Gold]] = {}
    for source, (grader, golds) in placed.items():
        kept[source] = []
        for gold in golds:
            content = frozenset(shingles(words(gold.problem.compared), SHINGLE))
            signature = empty.copy()
            signature.update_batch([shingle.encode() for shingle in content])
            entry = (gold, grader, content)
            twin = _twin(entry, [seen[int(key)] for key in index.query(signature)], similarity)
            if twin is None:
                index.insert(str(len(seen)), signature)
                seen.append(entry)
                kept[source].append(gold)
            else:
                other, jaccard = twin
                ledgers[source].remove(
                    "near_duplicate", id=gold.problem.id, stays=other.problem.id, similarity=round(jaccard, 3)
                )
            done += 1
            progress(done, total)
    return kept


def _twin(entry: _Seen, candidates: list[_Seen], similarity: float) -> tuple[Gold, float] | None:
    """The most similar candidate that is the same problem."""
    best: tuple[Gold, float] | None = None
    for candidate in candidates:
        jaccard = len(entry[2] & candidate[2]) / len(entry[2] | candidate[2])
        if jaccard >= similarity and (best is None or jaccard > best[1]) and _same_problem(candidate, entry):
            best = candidate[0], jaccard
    return best


def _same_problem(one: _Seen, other: _Seen) -> bool:
    """Whether what must agree exactly does: numbers and operators first, they need no algebra."""
    numbers = [arithmetic(words(gold.problem.compared)) for gold, *_ in (one, other)]
    return numbers[0] == numbers[1] and one_value(
        [(meant(gold.problem, gold.gold), grader) for gold, grader, _ in (one, other)]
    )
