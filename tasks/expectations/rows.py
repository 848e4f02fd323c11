"""Prepared problems read row group by row group, each reduced to plain cells: no text outlives its group.

Imports nothing heavy: worker processes start with this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.expectations.signs import NONE, answer_inside, language, option_state, template_state
from tasks.expectations.tokens import Prompt, most_tokens
from tasks.sources.contamination import BenchmarkIndex
from tasks.sources.figures import figure_marker
from tasks.sources.words import comparison_key
from vcppo.config import DataConfig
from vcppo.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Row:
    """One prepared problem."""

    id: str
    source: str
    grader: str
    gold: str
    problem: str
    options: list[str]
    prompt: list[dict[str, str]]

    @property
    def compared(self) -> str:
        """The text that makes the problem another one: the order of its options does not."""
        return "\n".join([self.problem, *sorted(self.options)])


@dataclass(frozen=True)
class Reference:
    """What every row is held against."""

    data: DataConfig
    index: BenchmarkIndex
    traces: Mapping[str, Sequence[str]]
    frame: int
    """Bytes of the chat template around a prompt."""
    trusted_bound: int
    """A prompt whose most tokens are no more than this is not counted: `max_prompt_tokens`, or 0 to count
    them all."""


@dataclass
class Described:
    """The cells of one row group by column, and what is left to do."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    keys: list[bytes] = field(default_factory=list)
    """Digest of what makes each problem another one."""
    uncounted: list[tuple[int, Prompt]] = field(default_factory=list)
    """Rows whose `prompt_tokens` must be counted: their place and prompt."""


def describe(path: Path, group: int, split: str, reference: Reference) -> Described:
    """The cells of one row group of a prepared file, but for what the grader and the tokenizer say."""
    result = Described()
    rows = []
    for place, row in enumerate(read_rows(path, group)):
        tokens = most_tokens(row.prompt, reference.frame)
        if tokens > reference.trusted_bound:
            result.uncounted.append((place, row.prompt))
        result.keys.append(hashlib.sha256(comparison_key(row.compared).encode()).digest()[:16])
        rows.append({**_cells(row, split, reference), "prompt_tokens": tokens})
    result.columns = {name: [cells[name] for cells in rows] for name in rows[0]} if rows else {}
    return result


def read_rows(path: Path, group: int | None = None) -> Iterator[Row]:
    """Problems of one row group, or of the whole file. Raises DataError if it is torn or lacks a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups) if group is None else (group,):
                table = file.read_row_group(number)
                yield from (Row(*cells) for cells in zip(*_lists(table, path), strict=True))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


def num_groups_and_rows(path: Path) -> tuple[int, int]:
    """Row groups and rows of a prepared file. Raises DataError if it is missing or torn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    return metadata.num_row_groups, metadata.num_rows


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a missing or torn file."""
    return DataError(f"{path}: is no readable parquet file ({error}); run `dvc repro prepare` again")


def column(table: pa.Table, name: str, path: Path) -> list[Any]:
    """One column; a dotted name reaches into a struct. Raises DataError if it is not there."""
    import pyarrow.compute as pc

    top, _, inner = name.partition(".")
    present = table.column_names
    if top in present and inner:
        present = [f"{top}.{field.name}" for field in table.schema.field(top).type]
    if name not in present:
        raise DataError(f"{path}: has no column {name!r}, only {', '.join(present)}; run `dvc repro prepare`")
    values = table.column(top)
    return (pc.struct_field(values, inner) if inner else values).to_pylist()


def _lists(table: pa.Table, path: Path) -> list[list[Any]]:
    names = (
        "extra_info.id",
        "data_source",
        "extra_info.grader",
        "reward_model.ground_truth",
        "extra_info.problem",
        "extra_info.options",
        "prompt",
    )
    return [column(table, name, path) for name in names]


def _cells(row: Row, split: str, reference: Reference) -> dict[str, Any]:
    data = reference.data
    content = row.prompt[-1]["content"]
    overlap = reference.index.overlap(row.compared, data.contamination_coverage) if split == "train" else None
    return {
        "id": row.id,
        "split": split,
        "source": row.source,
        "grader": row.grader,
        "prompt_sha256": hashlib.sha256(_prompt_text(row.prompt).encode()).hexdigest(),
        "gold": row.gold,
        "language": language(row.problem),
        "template": template_state(content, _shown_in(content, row.problem, data), data.prompt_template),
        "answer_inside": answer_inside(row.problem, reference.traces.get(row.id, ())),
        "figure": figure_marker(row.problem) or NONE,
        "options": option_state(row.options, row.grader),
        "overlap": overlap.benchmark_id if overlap else NONE,
    }


def _prompt_text(messages: Prompt) -> str:
    return "\0".join(f"{message['role']}\0{message['content']}" for message in messages)


def _shown_in(content: str, text: str, data: DataConfig) -> str:
    """The problem as the message shows it: the text itself, or with its lettered options behind it."""
    prefix, suffix = data.prompt_template.split("{problem}")
    inner = content.removeprefix(prefix).removesuffix(suffix)
    return inner if inner.startswith(f"{text}\n\n(A) ") else text
