"""What a grader says of one answer, and the benchmarks it can grade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from vcppo.errors import ConfigurationError

Status = Literal["right", "wrong", "no_answer", "truncated", "grader_error"]
STATUSES: tuple[Status, ...] = get_args(Status)
UNGRADED: Status = "grader_error"
"""No grade: counted, left out of every score, never a wrong answer."""
GRADED = frozenset(STATUSES) - {UNGRADED}
ANSWERED = frozenset({"right", "wrong"})
"""Of a response that gave an answer. The others may carry a text, for people to look at."""
BENCHMARKS = ("aime", "math", "gpqa", "steps")
CUT_REASONS = frozenset(
    {"length", "abort"}
)  # finish reasons of a response that the engine cut, not the model


@dataclass(frozen=True)
class Grade:
    """One graded response.

    `answer` is what was read as the final answer (None if nothing was), at most `MAX_SHOWN` characters;
    `detail` says in a few words why. A `grader_error` says nothing about the answer: never score it as
    wrong.
    """

    status: Status
    answer: str | None = None
    detail: str = ""

    @property
    def is_ungradable(self) -> bool:
        """A grader error by this one answer (time or memory ran out on it), while gold and grader are sound.
        Trying again gives it again."""
        return self.status == "grader_error" and self.answer is not None


class GradeItem(NamedTuple):
    """One response to grade; a plain tuple `(response, gold)` serves as well."""

    response: str
    gold: str
    finish_reason: str = "stop"


MAX_SHOWN = 200
ALTERED = "mathematics touches the box and changes its value"


def shown(text: str) -> str:
    """`text` cut to `MAX_SHOWN` characters, for records and messages."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def check_benchmark(benchmark: str) -> None:
    """Raise ConfigurationError unless `benchmark` has a grader."""
    if benchmark not in BENCHMARKS:
        raise ConfigurationError(
            f"no grader for benchmark {benchmark!r}; allowed: {', '.join(BENCHMARKS)}. "
            "Name one of them in the benchmark's declaration."
        )
