"""Two checkpoints on the same questions: the difference of their means, its interval, a test.

The questions are the clusters: each is averaged over its samples, the rest is done on the differences of the
question means. That removes what makes a question hard for both, most of the noise (arXiv 2411.00640).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import correlation, fmean, variance
from typing import TYPE_CHECKING

from vcppo.errors import DataError
from vcppo.statistics import checks
from vcppo.statistics.power import standard_errors_to_detect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

ELEMENTS_AT_ONCE = 1_000_000  # 8 MB of draws in memory, however many questions


@dataclass(frozen=True)
class PairedDifference:
    """b minus a over the same questions; `dataclasses.asdict` of it is JSON."""

    difference: float
    """mean of b - mean of a, in units of the score."""
    low: float
    high: float
    """Percentile interval of the cluster bootstrap at `confidence`."""
    confidence: float
    p_value: float
    """Two-sided sign-flip test: how often flipping the sign of question differences gives one as large."""
    standard_error: float
    """Of the difference, paired: standard deviation (n - 1) of the question differences / sqrt(questions)."""
    standard_error_unpaired: float
    """What it would be on two different sets of questions."""
    correlation: float | None
    """Of the question means of a and b; None when one of them is constant."""
    detectable_difference: float
    """The smallest true difference found 80 times of 100 (5 %, two-sided) by so many questions so noisy."""
    num_questions: int


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    confidence: float = 0.95,
    num_resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Is b better than a? Row q of both is the same question.

    a, b: scores [question, sample] (a and b may differ in samples) or question means [question].
    num_resamples: bootstrap draws, and sign patterns drawn where there are more than so many; up to then all
    are tried and the p-value is exact. The result is a function of the arguments, seed included.

    Raises ConfigurationError (settings) and DataError (scores: see `average_at_k`; questions that differ
    in number or are fewer than 2).
    """
    confidence = checks.open_unit("confidence", confidence)
    num_resamples = checks.count("num_resamples", num_resamples, at_least=100)
    seed = checks.count("seed", seed, at_least=0)
    means_a, means_b = checks.question_means("a", a), checks.question_means("b", b)
    num_questions = len(means_a)
    if len(means_b) != num_questions or num_questions < 2:
        raise DataError(
            f"a has {num_questions} questions, b has {len(means_b)}; allowed are the same, at least 2"
        )
    import numpy as np

    differences = np.asarray(means_b) - np.asarray(means_a)
    rng_flips, rng_bootstrap = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    low, high = _cluster_bootstrap(differences, confidence, num_resamples, rng_bootstrap)
    standard_error = float(differences.std(ddof=1)) / math.sqrt(num_questions)
    constant = min(means_a) == max(means_a) or min(means_b) == max(means_b)
    return PairedDifference(
        difference=fmean(means_b) - fmean(means_a),
        low=low,
        high=high,
        confidence=confidence,
        p_value=_sign_flip_p_value(differences, num_resamples, rng_flips),
        standard_error=standard_error,
        standard_error_unpaired=math.sqrt((variance(means_a) + variance(means_b)) / num_questions),
        correlation=None if constant else correlation(means_a, means_b),
        detectable_difference=standard_errors_to_detect() * standard_error,
        num_questions=num_questions,
    )


def _sign_flip_p_value(
    differences: NDArray[np.float64], num_resamples: int, rng: np.random.Generator
) -> float:
    """Share of sign patterns whose |sum| reaches the observed one; exact when all can be tried."""
    import numpy as np

    # A question without a difference flips to itself; without those, more cases are exact.
    moved = differences[differences != 0]
    reached = abs(float(moved.sum())) * (1 - 1e-12)  # sums of the same terms in another order count as equal
    exact = 2 ** len(moved) <= num_resamples
    num_patterns = 2 ** len(moved) if exact else num_resamples
    num_reached = 0
    chunk = max(1, ELEMENTS_AT_ONCE // max(1, len(moved)))
    for start in range(0, num_patterns, chunk):
        size = min(chunk, num_patterns - start)
        if exact:
            pattern = np.arange(start, start + size)[:, None] >> np.arange(len(moved))
            signs = (pattern & 1) * 2 - 1
        else:
            signs = rng.integers(0, 2, size=(size, len(moved)), dtype=np.int8) * 2 - 1
        num_reached += int((np.abs(signs @ moved) >= reached).sum())
    # Drawn patterns: the observed one counts as one of them, so that p is never 0.
    return num_reached / num_patterns if exact else (num_reached + 1) / (num_patterns + 1)


def _cluster_bootstrap(
    differences: NDArray[np.float64], confidence: float, num_resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Percentile interval of the mean over questions drawn with replacement, each with all its samples."""
    import numpy as np

    num_questions = len(differences)
    chunk = max(1, ELEMENTS_AT_ONCE // num_questions)
    means = np.concatenate(
        [
            differences[
                rng.integers(0, num_questions, size=(min(chunk, num_resamples - start), num_questions))
            ].mean(axis=1)
            for start in range(0, num_resamples, chunk)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
