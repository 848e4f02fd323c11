"""Mean of a few independent numbers (one a seed) with its interval by Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import SupportsIndex

from vcppo.errors import DataError
from vcppo.statistics import checks


@dataclass(frozen=True)
class MeanInterval:
    """`dataclasses.asdict` of it is JSON."""

    mean: float
    low: float | None
    high: float | None
    """Ends of the interval, in units of the numbers; None for a single number, whose spread is unknown."""
    n: int


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> MeanInterval:
    """mean +- t(confidence, n - 1) * standard deviation (n - 1) / sqrt(n) (Student 1908).

    Numbers that are all the same give an interval of width 0. The ends are not clipped to what the numbers
    can be. Raises ConfigurationError (confidence) and DataError (no number, or one that is not finite).
    """
    numbers = [
        checks.finite(f"values[{index}]", value)
        for index, value in enumerate(checks.listed("values", values))
    ]
    if not numbers:
        raise DataError("values is empty; allowed is at least one number")
    mean, n = fmean(numbers), len(numbers)
    if n == 1:
        checks.open_unit("confidence", confidence)
        return MeanInterval(mean, None, None, 1)
    half = t_quantile(n - 1, confidence=confidence) * stdev(numbers) / math.sqrt(n)
    return MeanInterval(mean, mean - half, mean + half, n)


def t_quantile(degrees_of_freedom: SupportsIndex, *, confidence: float = 0.95) -> float:
    """t with P(|T| <= t) = confidence: 12.706 for 1 degree of freedom and 0.95, 1.960 for very many.

    The finite series of P for whole degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4), inverted by
    bisection over the angle atan(t / sqrt(degrees_of_freedom)). Raises ConfigurationError (degrees of
    freedom not an integer >= 1, confidence outside (0, 1)).
    """
    freedom = checks.count("degrees_of_freedom", degrees_of_freedom, at_least=1)
    confidence = checks.open_unit("confidence", confidence)
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _central_probability(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _central_probability(angle: float, freedom: int) -> float:
    """P(|T| <= sqrt(freedom) * tan(angle))."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * cosine * cosine
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
