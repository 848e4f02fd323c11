"""Training problems that are one problem in slightly other words.

Candidates come from MinHash signatures of word shingles (Broder 1997) in datasketch's LSH index; a
candidate counts only if the exact Jaccard index reaches the limit and numbers, operators and gold answer
agree: "2 + 3 apples" and "2 + 4 apples" are different problems, however alike their wording.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from tasks.sources.cleaning import Gold
from tasks.sources.ledger import Ledger
from tasks.sources.words import arithmetic, shingles, words

SHINGLE = 3
NUM_PERMUTATIONS = 64


def without_near_duplicates(
    placed: dict[str, list[Gold]],
    ledgers: dict[str, Ledger],
    similarity: float,
    progress: Callable[[int, int], None],
) -> dict[str, list[Gold]]:
    """Keep the first of problems that are alike. placed: problems by source; the earlier source keeps its
    own.

    Every removal is listed in its source's ledger with the problem that stays and the Jaccard index.
    """
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=similarity, num_perm=NUM_PERMUTATIONS)
    empty = MinHash(num_perm=NUM_PERMUTATIONS, seed=1, hashfunc=zlib.crc32)
    seen: list[tuple[Gold, frozenset[str]]] = []
    total = sum(map(len, placed.values()))
    done = 0
    kept: dict[str, list[Gold]] = {}
    for source, golds in placed.items():
        kept[source] = []
        for gold in golds:
            sequence = words(gold.problem.compared)
            content = frozenset(shingles(sequence, SHINGLE))
            signature = empty.copy()
            signature.update_batch([shingle.encode() for shingle in content])
            # what must agree exactly is part of the key: only candidates that can count are compared
            exact = (gold.gold, arithmetic(sequence))
            twin = _twin(exact, content, [seen[int(key)] for key in index.query(signature)], similarity)
            if twin is None:
                index.insert(str(len(seen)), signature)
                seen.append((gold, content))
                kept[source].append(gold)
            else:
                other, jaccard = twin
                ledgers[source].remove(
                    "near_duplicate", id=gold.problem.id, stays=other.problem.id, similarity=round(jaccard, 3)
                )
            done += 1
            progress(done, total)
    return kept


def _twin(
    exact: tuple[str, tuple[str, ...]],
    content: frozenset[str],
    candidates: list[tuple[Gold, frozenset[str]]],
    similarity: float,
) -> tuple[Gold, float] | None:
    """The most similar candidate that is the same problem."""
    best: tuple[Gold, float] | None = None
    for other, shingled in candidates:
        if (other.gold, arithmetic(words(other.problem.compared))) != exact:
            continue
        jaccard = len(content & shingled) / len(content | shingled)
        if jaccard >= similarity and (best is None or jaccard > best[1]):
            best = other, jaccard
    return best
