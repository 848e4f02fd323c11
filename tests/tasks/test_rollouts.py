"""Stage rollouts: what its metrics say of the responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.rollouts import summarise
from vcppo.errors import GraderError


def store(folder: Path, statuses: list[str]) -> Path:
    rows: list[dict[str, Any]] = [
        {
            "id": f"s/{i}",
            "status": status,
            "answer": "4",
            "finish_reason": "stop",
            "response_ids": [1] * (i + 1),
        }
        for i, status in enumerate(statuses)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "shard-00000.parquet")
    return folder


def test_accuracy_is_of_the_responses_that_could_be_graded(tmp_path: Path) -> None:
    metrics = summarise(store(tmp_path, ["right", "wrong", "grader_error", "right"]))
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert (metrics["num_rollouts"], metrics["grader_errors"]) == (4, 1)
    assert (metrics["mean_response_tokens"], metrics["max_response_tokens"]) == (2.5, 4)


def test_rollouts_without_any_grade_are_a_failure_of_the_grader(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="not one of 2 responses could be graded"):
        summarise(store(tmp_path, ["grader_error"] * 2))
