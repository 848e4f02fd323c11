"""What the grader makes of gold answers: every different one is tried once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from vcppo.errors import ConfigurationError, DataError
from vcppo.grading import canonical_gold, grade_batch, steps
from vcppo.grading.pool import GradingPool

CANONICAL = "canonical"
LETTERS = "ABCD"
NUM_THREADS = 4
"""Enough to keep the workers busy to which the MATH grader gives its golds."""


def gold_states(golds: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Of each different (gold, grader): `canonical` or what it should be; the grade of the gold answer
    itself (`right`); the grade of another answer, gold + 1 (`wrong`).

    Raises GraderError when the grader's canaries fail.
    """
    asked = list(dict.fromkeys(golds))
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(NUM_THREADS))
        pool = None
        if any(grader == "math" for _, grader in asked):
            # with time enough: no policy wrote these, and the machine's load says nothing about the data
            pool = stack.enter_context(GradingPool(timeout_seconds=20.0, batch_seconds=60.0))
        return dict(zip(asked, threads.map(lambda pair: _state(pair[0], pair[1], pool), asked), strict=True))


def letter_p_value(letters: Iterable[str]) -> float:
    """Probability of gold letters at least so uneven if all four are equally likely (chi-square, three
    degrees of freedom)."""
    counts = Counter(letters)
    total = counts.total()
    if total == 0:
        return 1.0
    statistic = sum((counts[letter] - total / 4) ** 2 for letter in LETTERS) / (total / 4)
    return math.erfc(math.sqrt(statistic / 2)) + math.sqrt(2 * statistic / math.pi) * math.exp(-statistic / 2)


def another_answer(gold: str, grader: str) -> str:
    """An answer next to the gold one, which the grader must refuse."""
    if grader == "gpqa":
        return LETTERS[(LETTERS.find(gold) + 1) % 4]
    if grader == "aime":
        return str((int(gold) + 1) % 1000)
    try:
        return str(int(gold) + 1)
    except ValueError:
        return f"{gold}+1"


def _state(gold: str, grader: str, pool: GradingPool | None) -> tuple[str, str, str]:
    try:
        canonical = canonical_gold(gold, grader, pool)
    except (ConfigurationError, DataError) as error:
        return f"unreadable: {error}", "not graded", "not graded"
    responses = _responses(gold, canonical, grader)
    itself, other = grade_batch([(response, gold) for response in responses], grader, pool)
    return CANONICAL if canonical == gold else f"should be {canonical}", itself.status, other.status


def _responses(gold: str, canonical: str, grader: str) -> tuple[str, str]:
    """A response that gives the gold answer, and one that gives another."""
    if grader == "steps":
        num_steps, max_wrong = steps.read_gold(gold)
        return steps.response_with(num_steps, max_wrong), steps.response_with(num_steps, max_wrong + 1)
    return f"\\boxed{{{gold}}}", f"\\boxed{{{another_answer(canonical, grader)}}}"
