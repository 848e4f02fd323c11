"""The GAE recurrence on a GPU (or any device of torch): matrix products instead of a loop over tokens.

The trainable tokens of a row are first moved to its front, which closes the holes of the mask. What is left
is a decayed suffix sum, A_t = sum over k >= t of decay^(k - t) * delta_k, cut into blocks of about sqrt(T)
tokens: inside a block one product with the triangular matrix of powers; between blocks the same on totals.
All in float64: a float32 sum over 32k tokens would miss the promised 1e-5.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def blocked_gae(
    rewards: Tensor, values: Tensor, response_mask: Tensor, gamma: float, lam_actor: Tensor, lam_critic: float
) -> tuple[Tensor, Tensor, int]:
    """(advantages, returns, number of trainable tokens) of `gae.decoupled_gae`, whose checks it relies on.

    rewards, values: [batch, response] of one floating type; lam_actor: float64 [batch].
    A trainable inf or nan spoils its whole row (compiled: its token and those before), never another row.
    """
    selected = response_mask != 0
    order = selected.cumsum(dim=1) - 1  # place of each trainable token among those of its row
    num_trainable = int(order[:, -1].sum()) + len(order) if order.numel() else 0
    if not num_trainable:
        return torch.zeros_like(rewards), torch.zeros_like(rewards), 0
    width = rewards.shape[1]
    # One spare column at the end takes every masked slot; it is cut off, so junk goes nowhere.
    target = torch.where(selected, order, width)

    def packed(source: Tensor) -> Tensor:
        front = torch.zeros(len(source), width + 1, dtype=torch.float64, device=source.device)
        front.scatter_(1, target, source.to(torch.float64))
        front[:, width] = 0.0
        return front

    packed_values = packed(values)
    deltas = packed(rewards)[:, :width] + gamma * packed_values[:, 1:] - packed_values[:, :width]
    actor = decayed_suffix_sum(deltas, gamma * lam_actor)
    critic = decayed_suffix_sum(deltas, gamma * lam_actor.new_full((1,), lam_critic))

    def unpacked(front: Tensor) -> Tensor:
        return torch.where(selected, front.gather(1, order.clamp_min(0)), 0.0).to(rewards.dtype)

    return unpacked(actor), unpacked(critic + packed_values[:, :width]), num_trainable


def decayed_suffix_sum(terms: Tensor, decay: Tensor) -> Tensor:
    """sum over k >= t of decay^(k - t) terms[:, k]; terms [batch, T], decay [batch] or [1], float64."""
    batch_size, width = terms.shape
    block = max(1, math.isqrt(width - 1) + 1)
    num_blocks = -(-width // block)
    padded = torch.nn.functional.pad(terms, (0, num_blocks * block - width))
    blocks = padded.view(batch_size, num_blocks, block)
    inside = blocks @ _powers(block, decay).transpose(1, 2)
    totals = inside[:, :, :1]
    # The whole sum at the start of each block is again a suffix sum, with the decay of a whole block.
    at_start = _powers(num_blocks, decay**block) @ totals
    behind = torch.nn.functional.pad(at_start[:, 1:], (0, 0, 0, 1))
    to_next_block = decay[:, None, None] ** torch.arange(block, 0, -1, device=terms.device)
    return (inside + to_next_block * behind).reshape(batch_size, num_blocks * block)[:, :width]


def _powers(size: int, decay: Tensor) -> Tensor:
    """Matrices [batch, size, size]: decay^(column - row) on and above the diagonal, else 0."""
    index = torch.arange(size, device=decay.device)
    distance = index[None, :] - index[:, None]
    return torch.where(distance >= 0, decay[:, None, None] ** distance.clamp_min(0), 0.0)
