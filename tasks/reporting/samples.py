"""Responses to read: two right and two wrong ones of each policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.reporting.numbers import figure
from vcppo.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

OF_EACH = 2
SHOWN_CHARACTERS = 6000
ENDS = {"length": "cut at the token limit", "stop": "ended by itself"}
"""Longer texts lose their middle."""
COLUMNS = ("id", "data_source", "finish_reason", "gold", "status", "answer", "num_response_tokens")


@dataclass(frozen=True)
class Sample:
    """One response with what the grader made of it, as the page shows it."""

    status: str
    problem_id: str
    benchmark: str
    prompt: str | None
    response: str
    gold: str
    answer: str
    length: str


@dataclass(frozen=True)
class Samples:
    """All samples of one policy, counted; some of them to read."""

    statuses: Counter[str]
    chosen: Sequence[Mapping[str, Any]]
    """Rollout rows (data/README.md): those of `COLUMNS`, and the response."""

    def displayed(self, prompts: Mapping[str, str]) -> list[Sample]:
        """The chosen ones with their problems. prompts: by problem id."""
        return [_display(row, prompts.get(row["id"])) for row in self.chosen]


def read_samples(path: Path) -> Samples:
    """Count and choose; no samples if there is no such file. Raises DataError if it holds no rollouts."""
    if not path.is_file():
        return Samples(Counter(), ())
    table = read_columns(path, (*COLUMNS, "response"))
    # the texts of a large evaluation stay in Arrow's memory: only the chosen ones become strings
    rows = table.drop_columns("response").append_column("row", [range(table.num_rows)]).to_pylist()
    responses = table.column("response")
    chosen = [{**row, "response": responses[row["row"]].as_py()} for row in choose(rows)]
    return Samples(Counter(row["status"] for row in rows), chosen)


def read_columns(path: Path, columns: Sequence[str]) -> pa.Table:
    """The named columns of a parquet file. Raises DataError if it is none or lacks one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=list(columns)).select(list(columns))
    except (pa.ArrowException, KeyError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}; run its stage again") from None


def choose(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first right ones, then the first others (wrong answers before missing ones), each of another
    problem where there are enough. The order of the rows, by id hash, is the draw."""
    right = [row for row in rows if row["status"] == "right"]
    others = [row for row in rows if row["status"] != "right"]
    others.sort(key=lambda row: row["status"] != "wrong")
    return _of_different_problems(right) + _of_different_problems(others)


def shorten(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """The text, or its two ends and how many characters are left out between them."""
    if len(text) <= most:
        return text
    half = most // 2
    gap = f"[\N{HORIZONTAL ELLIPSIS} {len(text) - 2 * half:,} characters left out]"
    return f"{text[:half]}\n{gap}\n{text[-half:]}"


def _of_different_problems(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    first = {row["id"]: row for row in reversed(rows)}
    chosen = [row for row in rows if first[row["id"]] is row][:OF_EACH]
    rest = [row for row in rows if first[row["id"]] is not row]
    return chosen + rest[: OF_EACH - len(chosen)]


def _display(row: Mapping[str, Any], prompt: str | None) -> Sample:
    end = ENDS.get(row["finish_reason"], "broken off by the engine")
    return Sample(
        status=str(row["status"]).replace("_", " "),
        problem_id=str(row["id"]),
        benchmark=str(row["data_source"]),
        prompt=None if prompt is None else shorten(prompt),
        response=shorten(row["response"]),
        gold=str(row["gold"]),
        answer=figure(row["answer"]),
        length=f"{figure(row['num_response_tokens'])} tokens, {end}",
    )
