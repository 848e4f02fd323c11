"""Responses to scores, through the one grader that evaluation uses too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vcppo.config.stages import RewardConfig


@dataclass(frozen=True)
class Scored:
    status: str
    answer: str | None
    score: float


def score_responses(items: Sequence[tuple[str, str, str, str]], reward: RewardConfig) -> list[Scored]:
    """Grade and score a batch.

    Args:
        items: (response text, gold answer, grader name, finish_reason) of each response.
        reward: what a right and a wrong response is worth; no answer and truncated count as wrong.

    Raises:
        GraderError: the grader failed on the batch (its canary pair) or on a response: a grader error is
        never
            scored as wrong.
    """
    from vcppo.errors import GraderError
    from vcppo.grading import GradeItem, grade_batch

    scored: list[Scored | None] = [None] * len(items)
    for grader in sorted({item[2] for item in items}):
        rows = [i for i, item in enumerate(items) if item[2] == grader]
        batch = [GradeItem(items[i][0], items[i][1], items[i][3]) for i in rows]
        for i, grade in zip(rows, grade_batch(batch, grader), strict=True):
            if grade.status == "grader_error":
                raise GraderError(
                    f"grader {grader!r} failed on a response ({grade.detail}); nothing of the "
                    "batch is scored. "
                    f"Gold {items[i][1]!r}, response ends {items[i][0][-80:]!r}"
                )
            value = reward.right if grade.status == "right" else reward.wrong
            scored[i] = Scored(grade.status, grade.answer, value)
    return [s for s in scored if s is not None]
