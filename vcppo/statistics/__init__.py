"""Numbers with error bars for evaluations: plain numbers in, plain numbers out, no torch.

Scores are `[question, sample]`: a list of rows (or an array), one row a question, equally many in each.
A missing or ungraded sample is never counted as wrong: the caller leaves it out or gets an error here.

Modules:
- `estimators`  pass@k, avg@k, maj@k of one checkpoint, exact and unbiased;
- `intervals`   standard errors (clustered by question) and the Wilson interval;
- `comparison`  two checkpoints on the same questions: paired difference, sign-flip test, bootstrap;
- `student_t`   the mean of a few independent numbers (one a seed) with its interval;
- `power`       what a benchmark can tell: the smallest difference, the questions needed.

To add one: a function that names its source, checks its input through `checks`, raises `ConfigurationError`
for a setting and `DataError` for scores, and is tested against a value computed by other means.
"""

from __future__ import annotations

from vcppo.statistics.comparison import PairedDifference, paired_difference
from vcppo.statistics.estimators import average_at_k, majority_at_k, pass_at_k
from vcppo.statistics.intervals import clustered_standard_error, expected_standard_error, wilson_interval
from vcppo.statistics.power import detectable_difference, questions_needed
from vcppo.statistics.student_t import MeanInterval, mean_interval, t_quantile

__all__ = [
    "MeanInterval",
    "PairedDifference",
    "average_at_k",
    "clustered_standard_error",
    "detectable_difference",
    "expected_standard_error",
    "majority_at_k",
    "mean_interval",
    "paired_difference",
    "pass_at_k",
    "questions_needed",
    "t_quantile",
    "wilson_interval",
]
