"""How far an accuracy may be off: standard errors of scores that come in groups, and the Wilson interval."""

from __future__ import annotations

import math
from statistics import NormalDist, fmean, pvariance
from typing import TYPE_CHECKING

from vcppo.errors import ConfigurationError, DataError
from vcppo.statistics import checks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def clustered_standard_error(scores: ArrayLike, *, ddof: int = 0) -> float:
    """Standard error of the mean of [question, sample], the question being the cluster.

    sqrt(sum over questions of (sum of the question's deviations)^2) / N (Miller, arXiv 2411.00640).
    Treating all samples as independent is too small: samples of one question agree. ddof = 1 gives the
    small-sample form, the deviation of the question means over sqrt(Q), larger by sqrt(Q / (Q - 1)).

    Raises ConfigurationError (ddof not 0 or 1) and DataError (as `average_at_k`; too few questions for ddof).
    """
    if ddof not in (0, 1):
        raise ConfigurationError(f"ddof is {ddof!r}; allowed are 0 (Miller) and 1 (small sample)")
    means = checks.question_means("scores", checks.score_rows("scores", scores))
    if len(means) <= ddof:
        raise DataError(f"scores has {len(means)} questions; ddof = {ddof} needs at least {ddof + 1}")
    mean = fmean(means)
    return math.sqrt(math.fsum((m - mean) ** 2 for m in means) / (len(means) - ddof) / len(means))


def expected_standard_error(success_rates: ArrayLike, num_questions: int, num_samples: int) -> float:
    """Standard error to expect over new questions whose success rates are drawn from `success_rates`.

    sqrt((Var(x) + mean(x (1 - x)) / num_samples) / num_questions) (Miller, arXiv 2411.00640): more samples a
    question shrink only the second part. Scores 0 or 1, success_rates in [0, 1].

    Raises ConfigurationError (numbers below 1) and DataError (no rate, or one outside [0, 1]).
    """
    num_questions = checks.count("num_questions", num_questions, at_least=1)
    num_samples = checks.count("num_samples", num_samples, at_least=1)
    rates = checks.question_means("success_rates", success_rates)
    for question, rate in enumerate(rates):
        if not 0.0 <= rate <= 1.0:
            raise DataError(f"success_rates[{question}] is {rate!r}; allowed is a number in [0, 1]")
    if not rates:
        raise DataError("success_rates is empty; allowed is at least one rate")
    within = fmean(rate * (1.0 - rate) for rate in rates)
    return math.sqrt((pvariance(rates) + within / num_samples) / num_questions)


def wilson_interval(num_correct: int, num_samples: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """(low, high) for a proportion of independent samples (Wilson 1927); sound at 0 and at n of n too.

    For one sample a question, or one question; several samples of several questions are not independent: use
    `clustered_standard_error`.

    Raises ConfigurationError (confidence) and DataError (a number that is no integer, num_correct not in
    0..num_samples, no sample).
    """
    z = NormalDist().inv_cdf(0.5 + checks.open_unit("confidence", confidence) / 2)
    num_correct = checks.count("num_correct", num_correct, at_least=0, error=DataError)
    num_samples = checks.count("num_samples", num_samples, at_least=0, error=DataError)
    if num_samples < 1 or num_correct > num_samples:
        raise DataError(
            f"num_correct is {num_correct}, num_samples {num_samples}; allowed is 0..num_samples, at least 1"
        )
    rate, weight = num_correct / num_samples, z * z / num_samples
    centre = (rate + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(rate * (1 - rate) / num_samples + weight / (4 * num_samples))
    # At the ends the formula gives exactly 0 and 1, but for rounding.
    low = 0.0 if num_correct == 0 else centre - half
    high = 1.0 if num_correct == num_samples else centre + half
    return low, high
