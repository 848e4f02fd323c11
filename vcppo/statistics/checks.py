"""What the statistics ask of their input, and the messages for those who give something else."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, SupportsIndex

from vcppo.errors import ConfigurationError, DataError, VcppoError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def count(
    name: str, value: SupportsIndex, *, at_least: int, error: type[VcppoError] = ConfigurationError
) -> int:
    """`value` as an int; raises `error` unless it is an integer >= `at_least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = at_least - 1
    if isinstance(value, bool) or number < at_least:
        raise error(f"{name} is {value!r}; allowed is an integer >= {at_least}")
    return number


def number(value: Any) -> float:
    """`value` as a float; nan for what is no number (text neither), so that every range refuses it."""
    if isinstance(value, str | bytes | bytearray):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def open_unit(name: str, value: float) -> float:
    """`value` as a float; ConfigurationError unless 0 < value < 1."""
    if not 0.0 < number(value) < 1.0:
        raise ConfigurationError(
            f"{name} is {value!r}; allowed is a number between 0 and 1, neither included"
        )
    return float(value)


def score_rows(name: str, scores: ArrayLike) -> list[list[float]]:
    """`scores` as lists [question, sample]; DataError when empty, ragged, of another depth or not finite."""
    rows: list[list[float]] = []
    for question, row in enumerate(listed(name, scores)):
        if not isinstance(row, list):
            raise DataError(f"{name}[{question}] is {row!r}; allowed are rows of samples, [question][sample]")
        rows.append([finite(f"{name}[{question}][{sample}]", score) for sample, score in enumerate(row)])
    widths = sorted({len(row) for row in rows})
    if len(widths) != 1 or widths[0] == 0:
        raise DataError(
            f"{name} has {len(rows)} questions with {widths} samples each; allowed is one number >= 1 for "
            "all: a sample that is missing must be sampled and graded, not counted as wrong"
        )
    return rows


def question_means(name: str, scores: ArrayLike) -> list[float]:
    """One mean a question, from [question, sample] or from the means themselves [question]."""
    rows = listed(name, scores)
    if rows and not isinstance(rows[0], list):
        return [finite(f"{name}[{question}]", mean) for question, mean in enumerate(rows)]
    return [math.fsum(row) / len(row) for row in score_rows(name, rows)]


def finite(name: str, value: Any) -> float:
    """`value` as a float; DataError unless it is a finite number."""
    if not math.isfinite(number(value)):
        raise DataError(f"{name} is {value!r}; allowed is a finite number (no grade is not a wrong answer)")
    return float(value)


def listed(name: str, values: Any) -> list[Any]:
    """Nested plain lists from sequences, arrays or tensors; DataError for what has no order or no elements:
    a number, a text, a mapping, a set, None."""
    plain = _plain(values)
    if isinstance(plain, str | bytes | bytearray | Mapping | Set) or not isinstance(plain, Iterable):
        raise DataError(f"{name} is {values!r}; allowed is a list or an array, one element a question")
    return [_plain(value) for value in plain]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [_plain(element) for element in value]
    return value
