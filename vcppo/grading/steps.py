"""Independent steps: a response does a given number of them, and only so many may be wrong.

A step is four characters: its letter (a to z, then A to Z, then a again), two digits, and the larger of them:
`a377`, or `b122`. A step that is left open (`c06?`) is wrong, and so are four characters of another form or
with another letter than their place asks for. Steps follow one another without a gap, and the response ends
behind the last. The gold says how many there must be and how many of them may be wrong:
"40 steps, at most 7 wrong".
"""

from __future__ import annotations

import re
import string

from vcppo.errors import DataError
from vcppo.grading.result import CUT_REASONS, Grade, shown

LABELS = string.ascii_lowercase + string.ascii_uppercase
"""Letters of the steps in order; more steps start again from the first."""
STEP_CHARACTERS = 4
LEFT_OPEN = "?"
"""In the place of a step's result."""

_GOLD = re.compile(r"([1-9][0-9]{0,5}) steps, at most (0|[1-9][0-9]{0,5}) wrong")
_STEP = re.compile(r"([A-Za-z])([0-9])([0-9])([0-9?])")


def write_gold(num_steps: int, max_wrong: int) -> str:
    """The gold that `canonical_gold` reads."""
    return f"{num_steps} steps, at most {max_wrong} wrong"


def write_step(place: int, first: int, second: int, result: int | None) -> str:
    """One step as text. place: counted from 0; result: None leaves it open."""
    return f"{LABELS[place % len(LABELS)]}{first}{second}{LEFT_OPEN if result is None else result}"


def response_with(num_steps: int, num_wrong: int) -> str:
    """A response of `num_steps` steps whose first `num_wrong` are wrong: what a gold allows, and one more."""
    operands = [(place % 10, (place // 10) % 10) for place in range(num_steps)]
    return "".join(
        write_step(place, first, second, (max(first, second) + (place < num_wrong)) % 10)
        for place, (first, second) in enumerate(operands)
    )


def read_gold(gold: str) -> tuple[int, int]:
    """(number of steps, how many may be wrong) of a gold. Raises DataError for anything else."""
    match = _GOLD.fullmatch(gold)
    if match is None:
        raise DataError(
            f"steps gold {shown(repr(gold))} is not of the form '40 steps, at most 7 wrong'; correct or drop "
            "the row"
        )
    num_steps, max_wrong = int(match[1]), int(match[2])
    if max_wrong >= num_steps:
        raise DataError(
            f"steps gold {gold!r} allows {max_wrong} wrong steps of {num_steps}, so that nothing could be "
            "wrong; allowed are fewer than there are steps"
        )
    return num_steps, max_wrong


def canonical_gold(gold: str) -> str:
    """The gold itself, which has one spelling. Raises DataError for anything else."""
    return write_gold(*read_gold(gold))


def grade(response: str, gold: str, finish_reason: str = "stop") -> Grade:
    """Count the steps and those that are wrong. A cut response is `truncated` even behind its last step:
    nobody knows whether it would have ended there. Raises DataError when the gold cannot be read.
    """
    wanted, max_wrong = read_gold(gold)
    if finish_reason in CUT_REASONS:
        return Grade("truncated", None, f"cut ({finish_reason}) before it ended")
    text = response.strip()
    steps = [text[start : start + STEP_CHARACTERS] for start in range(0, len(text), STEP_CHARACTERS)]
    if not any(_STEP.fullmatch(step) for step in steps):
        return Grade("no_answer", None, "holds no step")
    num_wrong = sum(not _is_right(step, place) for place, step in enumerate(steps))
    answer = f"{len(steps)} steps, {num_wrong} wrong"
    if len(steps[-1]) < STEP_CHARACTERS:
        return Grade("wrong", answer, "ends inside a step")
    if len(steps) != wanted:
        return Grade("wrong", answer, f"{len(steps)} steps instead of {wanted}")
    if num_wrong > max_wrong:
        return Grade("wrong", answer, f"{num_wrong} steps are wrong, allowed are {max_wrong}")
    return Grade("right", answer)


def _is_right(step: str, place: int) -> bool:
    match = _STEP.fullmatch(step)
    return (
        match is not None and match[1] == LABELS[place % len(LABELS)] and match[4] == max(match[2], match[3])
    )
