"""From rows of a table (a mapping each) to problems, by the layout that the source has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasks.sources.layout import Layout, Reader, as_it_stands
from tasks.sources.multiple_choice import letter_of, permuted
from tasks.sources.problem import Problem, problem_id
from vcppo.errors import DataError

Row = tuple[str, Mapping[str, Any]]
"""Where a row was read (file and row number), and its values by column."""


def problems_of(rows: Iterable[Row], layout: Layout, source: str) -> Iterator[Problem]:
    """The problems of a table. source: its name. Raises DataError naming the row that lacks a column or
    value."""
    for where, row in rows:
        text = _text(row, layout.problem, where, layout.read_problem)
        answer = _text(row, layout.answer, where, layout.read_answer)
        given = None if layout.id is None else _text(row, layout.id, where)
        id_ = problem_id(source, text, given)
        options: tuple[str, ...] = ()
        if layout.wrong_options:
            all_options = [answer, *(_text(row, column, where) for column in layout.wrong_options)]
            order = permuted(id_, all_options)
            options, answer = tuple(all_options[index] for index in order), letter_of(order, 0)
        traces = () if layout.solution is None else (_text(row, layout.solution, where),)
        yield Problem(id=id_, text=text, answer=answer, where=where, traces=traces, options=options)


def _text(row: Mapping[str, Any], column: str, where: str, read: Reader = as_it_stands) -> str:
    """One cell as text without white space at its ends."""
    value: Any = row
    for part in column.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise DataError(
                f"{where}: has no column {column!r}; it has {', '.join(map(repr, row))}. Set the source's "
                "`*_column` "
                "keys to these, or its `dataset` to the one whose schema this is"
            )
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: column {column!r} holds {_kind(value)}, expected text or a number")
    try:
        text = read(str(value).strip()).strip()
    except ValueError as error:
        raise DataError(f"{where}: column {column!r}: {error}") from None
    if not text:
        raise DataError(f"{where}: column {column!r} is empty; mend or remove the row")
    return text


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__} ({str(value)[:40]!r})"
