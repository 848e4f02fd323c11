"""The GAE recurrence on a CPU: one compiled pass over the tokens that carries both lambdas in float64.

Row by row from the last token to the first; reads rewards, values and mask once, writes two outputs once. The
outputs are rounded to the input's type only when stored, so the error does not grow with the length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor


def compiled_gae(
    rewards: Tensor, values: Tensor, response_mask: Tensor, gamma: float, lam_actor: Tensor, lam_critic: float
) -> tuple[Tensor, Tensor, int]:
    """(advantages, returns, number of trainable tokens) of `gae.decoupled_gae`, whose checks it relies on.

    rewards, values: CPU tensors [batch, response] of one type, float32 or float64; lam_actor float64 [batch].
    """
    advantages, returns = torch.empty_like(rewards), torch.empty_like(rewards)
    # Other mask types would each cost a compilation; a comparison is cheaper.
    mask = response_mask if response_mask.dtype in (torch.int64, torch.uint8) else response_mask != 0
    if mask.dtype == torch.bool:
        mask = mask.contiguous().view(torch.uint8)
    num_trainable = _compiled()(
        rewards.numpy(),
        values.numpy(),
        mask.contiguous().numpy(),
        gamma,
        lam_actor.numpy(),
        lam_critic,
        advantages.numpy(),
        returns.numpy(),
    )
    return advantages, returns, int(num_trainable)


@cache
def _compiled() -> Callable[..., int]:
    """The machine code of `_scan`: from numba's cache on disk, or compiled at the first call."""
    import numba

    # contract: one rounding in a * b + c, which halves the chain from token to token; inf and nan stay.
    fastmath = {"contract"}
    try:
        return numba.njit(_scan, cache=True, nogil=True, fastmath=fastmath)
    except RuntimeError:  # no folder for the cache can be written: compile in each process
        return numba.njit(_scan, nogil=True, fastmath=fastmath)


def _scan(
    rewards: Any,
    values: Any,
    mask: Any,
    gamma: float,
    lam_actor: Any,
    lam_critic: float,
    advantages: Any,
    returns: Any,
) -> int:
    """Fill `advantages` and `returns` (arrays as in `compiled_gae`); gives the number of trainable tokens."""
    num_trainable = 0
    decay_critic = gamma * lam_critic
    for row in range(rewards.shape[0]):
        decay_actor = gamma * lam_actor[row]
        # One-dimensional views: with two indices an element the address arithmetic costs a third of the time.
        row_rewards, row_values, row_mask = rewards[row], values[row], mask[row]
        row_advantages, row_returns = advantages[row], returns[row]
        advantage_actor = 0.0
        advantage_critic = 0.0
        next_value = 0.0
        for token in range(len(row_values) - 1, -1, -1):
            if row_mask[token] != 0:
                value = float(row_values[token])
                delta = float(row_rewards[token]) + gamma * next_value - value
                advantage_actor = delta + decay_actor * advantage_actor
                advantage_critic = delta + decay_critic * advantage_critic
                next_value = value
                row_advantages[token] = advantage_actor
                row_returns[token] = advantage_critic + value
                num_trainable += 1
            else:
                row_advantages[token] = 0.0
                row_returns[token] = 0.0
    return num_trainable
