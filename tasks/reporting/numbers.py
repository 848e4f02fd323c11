"""Figures as a reader wants them, and axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MINUS = "\N{MINUS SIGN}"
MOST_TICKS = 5
"""Parts that an axis is cut into."""


def figure(value: Any, digits: int = 3) -> str:
    """A value for a table cell: floats with `digits` significant digits, integers grouped, None as a dash."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if value != 0 and not 5e-5 <= abs(value) < 1e6:
        return scientific(value, digits - 1)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def scientific(value: float, decimals: int) -> str:
    """`4.2e\N{MINUS SIGN}5`, without zeros that say nothing."""
    mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


def share(value: float) -> str:
    """A share between 0 and 1 with three decimals."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """A difference of shares with its sign."""
    return f"{value:+.3f}".replace("-", MINUS)


def byte_size(value: int) -> str:
    """`12 B`, `3.4 kB`, `5.6 MB`: powers of 1000."""
    size = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration(seconds: float) -> str:
    """`4.2 s`, `3 min 20 s`, `5 h 12 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def moment(stamp: str) -> str:
    """A record's time as `2026-03-01 02:07:50 UTC`."""
    return stamp.replace("T", " ").replace("+00:00", " UTC")


def round_step(span: float, most: int, *, whole: bool = False) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten that cuts `span` into at most `most` parts."""
    exponent = math.floor(math.log10(span / most))
    for power in (exponent, exponent + 1):
        for factor in (1, 2, 5):
            step = factor * 10.0**power
            if span / step <= most * (1 + 1e-9) and not (whole and step < 1):
                return step
    return 1.0  # whole steps over less than one


def ticks(low: float, high: float, most: int = MOST_TICKS, *, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, both included when they are round. low < high."""
    step = round_step(high - low, most, whole=whole)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def tick_labels(values: Sequence[float]) -> list[str]:
    """All with the same number of decimals, enough to tell them apart."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest == 0:
        return ["0"] * len(values)
    if not 1e-3 <= largest < 1e6:
        return [scientific(value, 1) if value else "0" for value in values]
    step = min((b - a for a, b in zip(values, values[1:], strict=False)), default=largest)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:,.{decimals}f}".replace("-", MINUS) for value in (v + 0.0 for v in values)]
