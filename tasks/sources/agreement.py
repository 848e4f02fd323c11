"""Whether golds that one problem was given are one gold."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.sources.multiple_choice import LETTERS
from tasks.sources.problem import Problem
from vcppo.config.sources import GraderName
from vcppo.grading import grade


def meant(problem: Problem, answer: str) -> str:
    """What an answer says, wherever the problem is shown: of an option its text, not the letter that it has
    there."""
    letter = answer.strip().upper()
    if problem.options and letter in LETTERS[: len(problem.options)]:
        return problem.options[LETTERS.index(letter)]
    return answer


def one_value(golds: Sequence[tuple[str, GraderName]]) -> bool:
    """Whether canonical golds, each with its source's grader, all mean the same. Algebra is asked only where
    their text differs and one of the two is read by it."""
    first, *rest = golds
    return all(_same(first, other) for other in rest)


def _same(one: tuple[str, GraderName], other: tuple[str, GraderName]) -> bool:
    if one[0] == other[0]:
        return True
    if "math" not in (one[1], other[1]):
        return False
    return grade(f"\\boxed{{{other[0]}}}", one[0], "math").status == "right"
