"""`grade`, `grade_batch` and `canonical_gold` for every benchmark."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

from vcppo.errors import DataError, GraderError
from vcppo.grading import aime, gpqa, math_grader, steps
from vcppo.grading.pool import GradingPool, shared_pool
from vcppo.grading.result import Grade, GradeItem, check_benchmark

_Result = TypeVar("_Result")
_PURE: dict[str, Callable[[str, str, str], Grade]] = {
    "aime": aime.grade,
    "gpqa": gpqa.grade,
    "steps": steps.grade,
}
_CANARY_PATIENCE = 5.0
_CANARIES = {  # graded with every batch: (item, the only acceptable status)
    "aime": (
        (GradeItem(r"Hence \boxed{042}.", "42"), "right"),
        (GradeItem(r"Hence \boxed{43}.", "42"), "wrong"),
    ),
    "gpqa": ((GradeItem("Answer: (C)", "C"), "right"), (GradeItem("Answer: (B)", "C"), "wrong")),
    "math": (
        (GradeItem(r"Hence \boxed{\frac{3}{6}}.", "0.5"), "right"),
        (GradeItem(r"Hence \boxed{\frac{3}{7}}.", "0.5"), "wrong"),
    ),
    "steps": (
        (GradeItem("a377b121", "2 steps, at most 1 wrong"), "right"),
        (GradeItem("a371b121", "2 steps, at most 1 wrong"), "wrong"),
    ),
}


def grade(response: str, gold: str, benchmark: str, finish_reason: str = "stop") -> Grade:
    """Grade one response.

    A `finish_reason` of `length` or `abort` turns "no answer" into `truncated`. A gold that cannot be
    read and a grader that fails are `grader_error`. Raises ConfigurationError for an unknown benchmark.
    """
    check_benchmark(benchmark)
    try:
        return _grade_all([GradeItem(response, gold, finish_reason)], benchmark, None)[0]
    except GraderError as error:
        return Grade("grader_error", None, str(error))


def grade_batch(
    items: Sequence[GradeItem | tuple[str, str] | tuple[str, str, str]],
    benchmark: str,
    pool: GradingPool | None = None,
) -> list[Grade]:
    """Grade `(response, gold[, finish_reason])` items in order, beside a canary pair: one right, one wrong.

    MATH runs in `pool` (the shared one by default). Raises GraderError when a canary is graded wrongly or
    gets no grade: then no grade of the batch can be trusted. Raises ConfigurationError for an unknown
    benchmark.
    """
    check_benchmark(benchmark)
    canaries = _CANARIES[benchmark]
    # on their own, with patience: neither poison in the batch nor a busy machine is a broken grader
    probed = _grade_all([item for item, _ in canaries], benchmark, pool, _CANARY_PATIENCE)
    for (item, status), found in zip(canaries, probed, strict=True):
        if found.status != status:
            raise GraderError(
                f"canary of the {benchmark} grader: {item.response!r} against {item.gold!r} must be "
                f"{status}, got {found.status} ({found.detail or 'no detail'}). The grader is broken; "
                "nothing was scored. Run the grading tests; check the worker's limits and its math-verify."
            )
    return _grade_all([GradeItem(*item) for item in items], benchmark, pool)


def canonical_gold(gold: str, benchmark: str, pool: GradingPool | None = None) -> str:
    """One spelling of a gold that the benchmark's grader can read (AIME: 0-999 without leading zeros).

    Raises DataError for a gold that it cannot read, ConfigurationError for an unknown benchmark.
    """
    check_benchmark(benchmark)
    if not isinstance(gold, str):
        raise DataError(f"gold must be text, got {type(gold).__name__}")
    if benchmark == "aime":
        return aime.canonical_gold(gold)
    if benchmark == "gpqa":
        return gpqa.canonical_gold(gold)
    if benchmark == "steps":
        return steps.canonical_gold(gold)
    return math_grader.canonical_gold(gold, pool or shared_pool())


def _grade_all(
    items: Sequence[GradeItem], benchmark: str, pool: GradingPool | None, patience: float = 1.0
) -> list[Grade]:
    if benchmark in _PURE:
        return [_guarded(_PURE[benchmark], item) for item in items]
    settled = [_guarded(math_grader.settle, item) for item in items]
    open_questions = [entry for entry in settled if isinstance(entry, math_grader.Question)]
    if not open_questions:
        return [entry for entry in settled if isinstance(entry, Grade)]
    asked = [(expression, entry.gold) for entry in open_questions for expression in entry.expressions]
    verdicts = iter((pool or shared_pool()).ask_all(asked, patience))
    return [
        entry
        if isinstance(entry, Grade)
        else math_grader.to_grade(entry, list(itertools.islice(verdicts, len(entry.expressions))))
        for entry in settled
    ]


def _guarded(function: Callable[[str, str, str], _Result], item: GradeItem) -> _Result | Grade:
    """Run a pure grader; whatever it raises is an error of the grader, not a wrong answer."""
    try:
        if not isinstance(item.response, str) or not isinstance(item.gold, str):
            raise DataError("response and gold must be text")
        return function(*item)
    except DataError as error:
        return Grade("grader_error", None, str(error))
    except Exception as error:  # a bug here must neither score zero nor end a batch of others
        return Grade("grader_error", None, f"{type(error).__name__}: {error}")
