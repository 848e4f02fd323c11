"""What the statistics ask of their input, and the messages for those who give something else."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from vcppo.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def count(name: str, value: SupportsIndex, *, at_least: int) -> int:
    """`value` as an int; ConfigurationError unless it is an integer >= `at_least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = at_least - 1
    if isinstance(value, bool) or number < at_least:
        raise ConfigurationError(f"{name} is {value!r}; allowed is an integer >= {at_least}")
    return number


def open_unit(name: str, value: float) -> float:
    """`value` as a float; ConfigurationError unless 0 < value < 1."""
    if not 0.0 < value < 1.0:
        raise ConfigurationError(
            f"{name} is {value!r}; allowed is a number between 0 and 1, neither included"
        )
    return float(value)


def score_rows(name: str, scores: ArrayLike) -> list[list[float]]:
    """`scores` as lists [question, sample]; DataError when empty, ragged, of another depth or not finite."""
    rows: list[list[float]] = []
    for question, row in enumerate(_listed(scores)):
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
    listed = _listed(scores)
    if listed and not isinstance(listed[0], list):
        return [finite(f"{name}[{question}]", mean) for question, mean in enumerate(listed)]
    return [math.fsum(row) / len(row) for row in score_rows(name, listed)]


def finite(name: str, value: Any) -> float:
    """`value` as a float; DataError unless it is a finite number."""
    if isinstance(value, str | list) or value is None or not math.isfinite(value):
        raise DataError(f"{name} is {value!r}; allowed is a finite number (no grade is not a wrong answer)")
    return float(value)


def _listed(values: Any) -> list[Any]:
    """Nested plain lists from sequences, arrays or tensors."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    return [_listed(v) if hasattr(v, "__len__") and not isinstance(v, str) else v for v in values]
