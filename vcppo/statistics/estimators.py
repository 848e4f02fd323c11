"""pass@k, avg@k and maj@k of one checkpoint: exact expectations, no resampling noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from vcppo.errors import ConfigurationError, DataError
from vcppo.statistics import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def pass_at_k(num_samples: int | Iterable[int], num_correct: int | Iterable[int], k: int) -> float:
    """Chance that at least one of k samples is right: 1 - C(n - c, k) / C(n, k), the mean over questions.

    num_samples: n, the samples that were really graded, one number for all questions or one a question;
    num_correct: c, likewise. Unbiased for any n >= k (Codex, arXiv 2107.03374, eq. 1); the plug-in
    1 - (1 - c/n)^k is biased low.

    Raises ConfigurationError (k not in 1..n) and DataError (n or c no integer, c not in 0..n, lengths differ,
    no question).
    """
    k = checks.count("k", k, at_least=1)
    given = {"num_samples": num_samples, "num_correct": num_correct}
    several = {name: checks.listed(name, x) for name, x in given.items() if isinstance(x, Iterable)}
    num_questions = len(next(iter(several.values()))) if several else 1
    samples, correct = (several.get(name, [x] * num_questions) for name, x in given.items())
    if len(samples) != len(correct) or not samples:
        raise DataError(
            f"num_samples has {len(samples)} questions, num_correct {len(correct)}; allowed are equal numbers"
        )
    chances = [_pass_at_k(n, c, k) for n, c in zip(samples, correct, strict=True)]
    return math.fsum(chances) / len(chances)


def _pass_at_k(n: int, c: int, k: int) -> float:
    n = checks.count("num_samples", n, at_least=0, error=DataError)
    c = checks.count(f"num_correct of {n} samples", c, at_least=0, error=DataError)
    if k > n:
        raise ConfigurationError(
            f"k is {k} but a question has {n} samples; allowed is k in 1..{n}: sample more"
        )
    if c > n:
        raise DataError(f"num_correct is {c} of {n} samples; allowed is 0..{n}")
    return float(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))


def average_at_k(scores: ArrayLike) -> float:
    """Mean score of [question, sample]: avg@k, the low-noise estimate of pass@1 when scores are 0 or 1.

    Raises DataError: no question, questions with different numbers of samples, a score that is not finite.
    """
    rows = checks.score_rows("scores", scores)
    return math.fsum(score for row in rows for score in row) / (len(rows) * len(rows[0]))


def majority_at_k(answers: Sequence[Hashable | None], gold: Hashable, k: int) -> float:
    """Chance that the majority of k of the answers to one question is `gold`, over all C(n, k) subsets.

    answers: one a sample, equal when they mean the same; None (no answer) takes a place among the k but never
    votes. Answers that tie for first share the win equally. With k = n it is the vote of all samples. Exact,
    by counting how many subsets give each outcome, so C(n, k) may be astronomically large.

    Raises ConfigurationError (k not in 1..n) and DataError (gold is None, answers no list or not hashable).
    """
    k = checks.count("k", k, at_least=1)
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise DataError(f"answers is {answers!r}; allowed is a list, one answer (or None) a sample")
    answers = list(answers)
    for name, answer in [("gold", gold), *((f"answers[{i}]", own) for i, own in enumerate(answers))]:
        try:
            hash(answer)
        except TypeError:
            raise DataError(
                f"{name} is {answer!r}; allowed is what can be hashed: a text or a number"
            ) from None
    n = len(answers)
    if k > n:
        raise ConfigurationError(f"k is {k} but there are {n} answers; allowed is k in 1..{n}: sample more")
    if gold is None:
        raise DataError("gold is None; allowed is an answer: None stands for a sample without one")
    votes = Counter(answer for answer in answers if answer is not None)
    num_gold = votes.pop(gold, 0)
    silent = n - num_gold - votes.total()
    wins = Fraction(0)
    for won_with in range(1, min(num_gold, k) + 1):
        others = _subsets_with_at_most(won_with, list(votes.values()), silent, k - won_with)
        for num_ties, num_subsets in others.items():
            wins += Fraction(math.comb(num_gold, won_with) * num_subsets, 1 + num_ties)
    return float(wins / math.comb(n, k))


def _subsets_with_at_most(most: int, class_sizes: list[int], silent: int, size: int) -> dict[int, int]:
    """Subsets of `size` answers with at most `most` of any class, by how many classes have exactly `most`."""
    ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})  # (answers taken, classes with exactly `most`)
    for class_size in class_sizes:
        grown: Counter[tuple[int, int]] = Counter()
        for (taken, ties), number in ways.items():
            for votes in range(min(most, class_size, size - taken) + 1):
                key = (taken + votes, ties + (votes == most))
                grown[key] += number * math.comb(class_size, votes)
        ways = grown
    by_ties: Counter[int] = Counter()
    for (taken, ties), number in ways.items():
        by_ties[ties] += number * math.comb(silent, size - taken)
    return by_ties
