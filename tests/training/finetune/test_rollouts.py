"""Reading rollouts and splitting them by prompt."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from training.finetune.rollouts import Rollout, load_rollouts, split_by_prompt
from vcppo.errors import DataError


def row(**values: Any) -> dict[str, Any]:
    return {
        "id": "p",
        "sample": 0,
        "prompt_ids": [1, 2],
        "response_ids": [3, 4],
        "score": 1.0,
        "status": "right",
        "finish_reason": "stop",
        **values,
    }


def write(folder: Path, *shards: list[dict[str, Any]]) -> Path:
    for i, rows in enumerate(shards):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"shard-{i:05d}.parquet")
    return folder


def test_grader_errors_and_empty_responses_are_left_out_never_taken_for_wrong(tmp_path: Path) -> None:
    rows = [row(), row(status="grader_error", score=-1.0), row(response_ids=[])]
    rollouts, left_out = load_rollouts(write(tmp_path, rows))
    assert (len(rollouts), left_out) == (1, 2)


def test_a_response_cut_by_the_limit_is_told_by_its_finish_reason(tmp_path: Path) -> None:
    rows = [row(finish_reason="length", status="truncated", score=-1.0), row()]
    rollouts, _ = load_rollouts(write(tmp_path, rows))
    assert [(r.finished, r.right) for r in rollouts] == [(False, False), (True, True)]


def test_shards_are_read_in_their_order(tmp_path: Path) -> None:
    rollouts, _ = load_rollouts(write(tmp_path, [row(id="b")], [row(id="a")]))
    assert [r.prompt for r in rollouts] == ["b", "a"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [([row(status="grader_error")], "none of its 1 rollouts"), ([row(score=float("nan"))], "score nan")],
)
def test_unusable_rollouts_are_named(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_rollouts(write(tmp_path, rows))


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of its 0 rollouts in 0 shards"):
        load_rollouts(tmp_path)


def test_the_split_is_by_prompt_and_independent_of_order(rollouts: list[Rollout]) -> None:
    train, held_out = split_by_prompt(rollouts, 0.25)
    assert {r.prompt for r in train}.isdisjoint({r.prompt for r in held_out})
    assert len(train) + len(held_out) == len(rollouts)
    assert len({r.prompt for r in held_out}) == 6
    shuffled = list(rollouts)
    random.Random(3).shuffle(shuffled)
    assert {r.prompt for r in split_by_prompt(shuffled, 0.25)[1]} == {r.prompt for r in held_out}


def test_too_few_prompts_are_refused(rollouts: list[Rollout]) -> None:
    with pytest.raises(DataError, match="1 prompts cannot be split"):
        split_by_prompt(rollouts[:4], 0.1)
