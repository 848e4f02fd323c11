"""Is the critic calibrated? Explained variance, value bias, and the mean of anything by position.

Explained variance alone can stay near zero while the critic is harmless or harmful; value bias and the
profile by position show the first fault that VC-PPO cures (arXiv 2503.01491): early tokens valued too low.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from training.algorithms import checks
from vcppo.errors import ConfigurationError


@dataclass(frozen=True)
class PositionBin:
    """Trainable tokens whose position lies in [start, stop); `mean` is None when there are none."""

    start: float
    stop: float
    count: int
    mean: float | None


@dataclass(frozen=True)
class PositionProfile:
    """One quantity by position. `dataclasses.asdict` of it is JSON."""

    absolute: tuple[PositionBin, ...]
    """In tokens: 0 is the first trainable token of a response."""
    relative: tuple[PositionBin, ...]
    """As a share of the response's own length: 0 is its start, 1 its end."""


def explained_variance(values: Tensor, returns: Tensor, response_mask: Tensor) -> float:
    """1 - Var(returns - values) / Var(returns) over the trainable tokens; all [batch, response].

    1 is perfect, 0 no better than a constant: from there down a critic adds variance (arXiv 2604.19485).
    nan when the returns are constant (every response right, or a dead grader): nothing is there to explain.
    Raises DataError (a ValueError): shapes or devices differ, or no token is trainable.
    """
    checks.same_shape(values=values, returns=returns, response_mask=response_mask)
    selected = checks.trainable(response_mask)
    target = returns[selected].to(torch.float64)
    spread = target.std(correction=0).item()
    # Equal rewards come out of float32 values as returns that differ in the last digits only.
    if spread <= 1e-6 * max(1.0, abs(target.mean().item())):
        return math.nan
    error = target - values[selected].to(torch.float64)
    return 1.0 - error.var(correction=0).item() / spread**2


def value_bias(values: Tensor, returns: Tensor, response_mask: Tensor) -> float:
    """mean(values - returns) over the trainable tokens, in units of the reward; below 0: too low a critic.

    All [batch, response]. Raises DataError (a ValueError): shapes or devices differ, no token is trainable.
    """
    checks.same_shape(values=values, returns=returns, response_mask=response_mask)
    selected = checks.trainable(response_mask)
    return (values[selected].to(torch.float64) - returns[selected].to(torch.float64)).mean().item()


MOST_BINS = 1_000_000


def by_position(
    quantity: Tensor, response_mask: Tensor, *, num_bins: int = 10, tokens_per_bin: int | None = None
) -> PositionProfile:
    """Mean of `quantity` [batch, response] (values, returns, advantages, ...) by the token's position.

    The position counts trainable tokens, so neither holes nor padding shift it. Relative: `num_bins` bins of
    equal share. Absolute: bins of `tokens_per_bin` tokens; without it, as many as cut the longest response
    into at most `num_bins` (give it to compare steps, whose longest responses differ).

    Raises ConfigurationError (num_bins or tokens_per_bin not an integer from 1 to `MOST_BINS`) and DataError
    (shapes, devices, no trainable token): ValueErrors.
    """
    for name, number in (("num_bins", num_bins), ("tokens_per_bin", tokens_per_bin)):
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_BINS:
            raise ConfigurationError(f"{name} is {number!r}; allowed is an integer from 1 to {MOST_BINS:,}")
    checks.same_shape(quantity=quantity, response_mask=response_mask)
    selected = checks.trainable(response_mask)
    chosen = quantity[selected].detach().to(torch.float64)
    lengths = selected.sum(dim=1)
    position = (selected.cumsum(dim=1) - 1)[selected]
    length = lengths[:, None].expand_as(selected)[selected]

    longest = int(lengths.max())
    step = tokens_per_bin or -(-longest // num_bins)
    absolute = _means(position // step, chosen, [step * i for i in range(-(-longest // step) + 1)])
    # Integers: position / length * num_bins would put exact edges on either side.
    relative = _means(position * num_bins // length, chosen, [i / num_bins for i in range(num_bins + 1)])
    return PositionProfile(absolute=absolute, relative=relative)


def _means(bin_of_token: Tensor, chosen: Tensor, edges: list[float]) -> tuple[PositionBin, ...]:
    num_bins = len(edges) - 1
    counts = torch.bincount(bin_of_token, minlength=num_bins).tolist()
    sums = torch.bincount(bin_of_token, weights=chosen, minlength=num_bins).tolist()
    return tuple(
        PositionBin(edges[i], edges[i + 1], counts[i], sums[i] / counts[i] if counts[i] else None)
        for i in range(num_bins)
    )
