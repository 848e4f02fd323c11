"""Rollout rows (data/README.md) as token sequences with a score, split by prompt."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vcppo.errors import DataError
from vcppo.grading.result import UNGRADED


@dataclass(frozen=True)
class Rollout:
    """One graded response."""

    prompt: str
    """Id of the problem."""
    sample: int
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    score: float
    """The reward, given at the last token."""
    right: bool
    finished: bool
    """False: cut at the length limit."""


def load_rollouts(directory: Path) -> tuple[list[Rollout], int]:
    """(rollouts in shard order, how many were left out).

    Left out: what the grader failed on (never to be taken for wrong) and empty responses.
    Raises DataError: no shard, no usable rollout, or a score that is not finite.
    """
    import pyarrow.parquet as pq

    columns = ["id", "sample", "prompt_ids", "response_ids", "score", "status", "finish_reason"]
    shards = sorted(directory.glob("*.parquet"))
    rows = [row for path in shards for row in pq.read_table(path, columns=columns).to_pylist()]
    usable = [row for row in rows if row["status"] != UNGRADED and row["response_ids"]]
    if not usable:
        raise DataError(
            f"{directory}: none of its {len(rows)} rollouts in {len(shards)} shards can be used (the "
            "others are "
            "empty or could not be graded); run the rollouts stage again"
        )
    for row in usable:
        if row["score"] is None or not math.isfinite(row["score"]):
            raise DataError(
                f"{directory}: rollout {row['id']} sample {row['sample']} has score {row['score']!r}"
            )
    rollouts = [
        Rollout(
            prompt=row["id"],
            sample=row["sample"],
            prompt_ids=tuple(row["prompt_ids"]),
            response_ids=tuple(row["response_ids"]),
            score=row["score"],
            right=row["status"] == "right",
            finished=row["finish_reason"] == "stop",
        )
        for row in usable
    ]
    return rollouts, len(rows) - len(usable)


def prompt_order(prompt: str) -> str:
    """Sort key of a prompt: the hash of its id, the same in whatever file or order it comes."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def split_by_prompt(
    rollouts: Sequence[Rollout], held_out_fraction: float
) -> tuple[list[Rollout], list[Rollout]]:
    """(train, held out): the first prompts by hash are held out, with all their samples.

    Raises DataError if either side would be empty.
    """
    prompts = sorted({rollout.prompt for rollout in rollouts}, key=prompt_order)
    count = max(1, round(held_out_fraction * len(prompts)))
    if count >= len(prompts):
        raise DataError(
            f"{len(prompts)} prompts cannot be split with held_out_fraction {held_out_fraction}: at least "
            "one must "
            "remain on each side; raise rollouts.num_prompts or change held_out_fraction"
        )
    chosen = set(prompts[:count])
    held_out = [rollout for rollout in rollouts if rollout.prompt in chosen]
    return [rollout for rollout in rollouts if rollout.prompt not in chosen], held_out
