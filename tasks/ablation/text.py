"""Means over seeds as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tasks.reporting.numbers import MINUS, figure

Mean = Mapping[str, Any] | None
MOST_DECIMALS = 4


def plus_minus(mean: Mean, *, sign: bool = False) -> str:
    """`0.942 \N{PLUS-MINUS SIGN} 0.031`, the second being half of the interval, with two significant digits.

    Of a single run the mean alone, a dash where there is no number. sign: `+` before positive means.
    """
    if mean is None:
        return figure(None)
    value = float(mean["mean"])
    if mean["high"] is None:
        return f"{'+' if sign and value > 0 else ''}{figure(value)}"
    half = mean["high"] - value
    decimals = 3
    if half > 0:
        decimals = min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(half))))
    shown = f"{value:{'+' if sign else ''},.{decimals}f}".replace("-", MINUS)
    return f"{shown} \N{PLUS-MINUS SIGN} {half:,.{decimals}f}"


def with_runs(mean: Mean, *, sign: bool = False) -> str:
    """`0.942 \N{PLUS-MINUS SIGN} 0.031 (5 runs)`."""
    if mean is None:
        return figure(None)
    runs = "1 run" if mean["n"] == 1 else f"{mean['n']} runs"
    return f"{plus_minus(mean, sign=sign)} ({runs})"


def verdict(difference: Mean) -> str:
    """What the interval of a paired difference says."""
    if difference is None:
        return "no pair of runs"
    if difference["low"] is None:
        return "one pair tells no spread"
    if difference["low"] > 0:
        return "above 0, beyond chance"
    if difference["high"] < 0:
        return "below 0, beyond chance: against what was expected"
    return "within what chance gives"
