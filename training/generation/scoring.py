"""Responses to scores, through the one grader that evaluation uses too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vcppo.config.stages import RewardConfig
from vcppo.grading.result import UNGRADED

MAX_UNGRADABLE = 2
MAX_UNGRADABLE_SHARE = 0.25
"""More answers than both that cannot be graded: then it is the grader that fails, not the answers."""


@dataclass(frozen=True)
class Scored:
    status: str
    answer: str | None
    score: float
    """Of an answer that cannot be graded (status `grader_error`): half-way between right and wrong, for
    PPO's batch needs a number. Where samples can be left out, leave it out (`is_graded`)."""

    @property
    def is_graded(self) -> bool:
        return self.status != UNGRADED


def score_responses(items: Sequence[tuple[str, str, str, str]], reward: RewardConfig) -> list[Scored]:
    """Grade and score a batch.

    Args:
        items: (response text, gold answer, grader name, finish_reason) of each response.
        reward: what a right and a wrong response is worth; no answer and truncated count as wrong.

    Raises:
        GraderError: the grader failed on the batch (its canary pair, too many answers that it cannot grade)
            or on a gold. A single answer that exhausts it is handed back without a grade: it would exhaust
            it again at every retry, and is never scored as wrong.
    """
    from vcppo.errors import GraderError
    from vcppo.grading import GradeItem, grade_batch

    scored: list[Scored | None] = [None] * len(items)
    for grader in sorted({item[2] for item in items}):
        rows = [i for i, item in enumerate(items) if item[2] == grader]
        batch = [GradeItem(items[i][0], items[i][1], items[i][3]) for i in rows]
        for i, grade in zip(rows, grade_batch(batch, grader), strict=True):
            if grade.status == UNGRADED and not grade.is_ungradable:
                raise GraderError(
                    f"grader {grader!r} failed on a response ({grade.detail}); nothing of the "
                    "batch is scored. "
                    f"Gold {items[i][1]!r}, response ends {items[i][0][-80:]!r}"
                )
            scored[i] = Scored(grade.status, grade.answer, _score(grade.status, reward))
    result = [s for s in scored if s is not None]
    ungradable = sum(not s.is_graded for s in result)
    if ungradable > max(MAX_UNGRADABLE, MAX_UNGRADABLE_SHARE * len(result)):
        raise GraderError(
            f"{ungradable} of {len(result)} answers of a batch cannot be graded (time or memory ran out); "
            f"allowed are {MAX_UNGRADABLE_SHARE:.0%}. Nothing of the batch is scored: check the machine's "
            "load and memory, and what the policy writes"
        )
    return result


def _score(status: str, reward: RewardConfig) -> float:
    if status == UNGRADED:
        return (reward.right + reward.wrong) / 2
    return reward.right if status == "right" else reward.wrong
