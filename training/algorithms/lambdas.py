"""Rules that choose lam_actor: VAPO's length-adaptive GAE (arXiv 2504.05118).

A longer response gets a larger lambda: the weights lambda^l of GAE then sum to about alpha * length, in
proportion to the response, where a fixed lambda of 0.95 gives every response the same 20 tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.algorithms import checks
from vcppo.errors import DataError


def length_adaptive_lambda(response_lengths: Tensor, alpha: float = 0.05) -> Tensor:
    """1 - 1 / (alpha * length), clamped to [0, 1]; float32, in the shape given (usually [batch]).

    response_lengths: trainable tokens a response, >= 0. The rule is negative below 1 / alpha tokens (20 at
    0.05) and has no value for an empty response: both get 0.

    Raises ConfigurationError (alpha not a finite number > 0) and DataError (a length negative or nan).
    """
    alpha = checks.positive("alpha", alpha)
    lengths = torch.as_tensor(response_lengths).to(torch.float64)
    if not bool((lengths >= 0).all()):
        wrong = lengths[~(lengths >= 0)][0].item()
        raise DataError(f"response_lengths holds {wrong!r}; allowed are numbers of tokens >= 0")
    # 1 / 0 = inf, so that length 0 ends at the clamp too.
    return (1.0 - 1.0 / (alpha * lengths)).clamp(0.0, 1.0).to(torch.float32)
