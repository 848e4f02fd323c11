"""What a benchmark can tell: the smallest true difference it finds, the questions a difference needs.

The power formula of Miller (arXiv 2411.00640), for two checkpoints with equally many samples a question:

    num_questions = (z_{1 - significance / 2} + z_power)^2 (omega2 + 2 sigma2 / num_samples) / difference^2

omega2: variance over questions of the difference of the two true success rates; sigma2: mean variance of one
sample within a question (x (1 - x) for a success rate x).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from vcppo.errors import ConfigurationError
from vcppo.statistics import checks


def detectable_difference(
    num_questions: int,
    num_samples: int,
    *,
    omega2: float,
    sigma2: float,
    significance: float = 0.05,
    power: float = 0.8,
) -> float:
    """The true difference that a two-sided test at `significance` finds with probability `power`.

    Raises ConfigurationError: a number below 1, a variance below 0, significance or power outside (0, 1).
    """
    num_questions = checks.count("num_questions", num_questions, at_least=1)
    variance = _variance_of_a_question(num_samples, omega2, sigma2)
    return standard_errors_to_detect(significance, power) * math.sqrt(variance / num_questions)


def questions_needed(
    difference: float,
    num_samples: int,
    *,
    omega2: float,
    sigma2: float,
    significance: float = 0.05,
    power: float = 0.8,
) -> float:
    """Questions to find a true `difference` (not 0) with probability `power`; round up to ask for them.

    Raises ConfigurationError: difference 0 or not finite, or as `detectable_difference`.
    """
    if not 0.0 < abs(checks.number(difference)) < math.inf:
        raise ConfigurationError(f"difference is {difference!r}; allowed is a finite number other than 0")
    variance = _variance_of_a_question(num_samples, omega2, sigma2)
    return standard_errors_to_detect(significance, power) ** 2 * variance / difference**2


def standard_errors_to_detect(significance: float = 0.05, power: float = 0.8) -> float:
    """z_{1 - significance / 2} + z_power: a true difference of so many standard errors is found (2.80)."""
    normal = NormalDist()
    two_sided = 1 - checks.open_unit("significance", significance) / 2
    return normal.inv_cdf(two_sided) + normal.inv_cdf(checks.open_unit("power", power))


def _variance_of_a_question(num_samples: int, omega2: float, sigma2: float) -> float:
    num_samples = checks.count("num_samples", num_samples, at_least=1)
    for name, variance in (("omega2", omega2), ("sigma2", sigma2)):
        if not 0.0 <= checks.number(variance) < math.inf:
            raise ConfigurationError(f"{name} is {variance!r}; allowed is a finite variance >= 0")
    return omega2 + 2.0 * sigma2 / num_samples
