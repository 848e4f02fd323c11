"""From rows of a table (a mapping each) to problems, by the column names that a source declares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasks.sources.problem import Problem, problem_id
from vcppo.config.sources import FileSource, HubSource
from vcppo.errors import DataError

Row = tuple[str, Mapping[str, Any]]
"""Where a row was read (file and row number), and its values by column."""


def problems_of(rows: Iterable[Row], source: FileSource | HubSource) -> Iterator[Problem]:
    """The problems of a table. Raises DataError naming the row that lacks a column or a value."""
    for where, row in rows:
        text = _text(row, source.problem_column, "problem_column", where)
        given = None if source.id_column is None else _text(row, source.id_column, "id_column", where)
        traces: tuple[str, ...] = ()
        if source.solution_column is not None:
            traces = (_text(row, source.solution_column, "solution_column", where),)
        yield Problem(
            id=problem_id(source.name, text, given),
            text=text,
            answer=_text(row, source.answer_column, "answer_column", where),
            where=where,
            traces=traces,
        )


def column_roots(source: FileSource | HubSource) -> list[str]:
    """The top-level columns that a source needs."""
    names = (source.problem_column, source.answer_column, source.id_column, source.solution_column)
    return sorted({name.split(".")[0] for name in names if name is not None})


def _text(row: Mapping[str, Any], column: str, key: str, where: str) -> str:
    """One cell as text without white space at its ends. A dotted column reaches into structs."""
    value: Any = row
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise DataError(
                f"{where}: has no column {column!r} ({key}); it has {', '.join(map(repr, row))}. "
                f"Set {key} of the source to one of these"
            )
        value = value[part]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: column {column!r} holds {_kind(value)}, expected text or a number")
    text = str(value).strip()
    if not text:
        raise DataError(f"{where}: column {column!r} is empty; mend or remove the row")
    return text


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__} ({str(value)[:40]!r})"
