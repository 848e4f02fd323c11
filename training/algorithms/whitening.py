"""Advantages to mean 0 and deviation 1 over the trainable tokens of the batch, as verl's `masked_whiten`.

It differs in three points: sums in float64; masked slots are selected away and come out as 0; a single
trainable token gives 0 instead of an error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.algorithms import checks

VARIANCE_FLOOR = 1e-8  # verl's: equal advantages stay 0 instead of becoming 0/0


def whiten(advantages: Tensor, response_mask: Tensor) -> Tensor:
    """(advantages - mean) / sqrt(var + 1e-8) over the trainable tokens, 0 elsewhere; both [batch, response].

    The variance is the unbiased one (n - 1). Half precision comes back as float32.
    Raises DataError (a ValueError): shapes or devices differ, or no token is trainable.
    """
    checks.same_shape(advantages=advantages, response_mask=response_mask)
    selected = checks.trainable(response_mask)
    chosen = advantages[selected].to(torch.float64)
    centred = chosen - chosen.mean()
    variance = (centred**2).sum() / max(1, chosen.numel() - 1)
    dtype = torch.promote_types(advantages.dtype, torch.float32)
    whitened = torch.zeros_like(advantages, dtype=dtype)
    whitened[selected] = (centred * torch.rsqrt(variance + VARIANCE_FLOOR)).to(dtype)
    return whitened
