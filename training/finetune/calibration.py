"""Is a pretrained critic calibrated on held-out prompts, and may PPO start from it?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from training.algorithms import PositionBin, by_position, explained_variance, value_bias
from training.finetune.rollouts import Rollout
from vcppo.config.stages import CriticGate

NUM_BINS = 20
"""Relative positions of the calibration curve: 5 % of a response each."""
NUM_LENGTH_GROUPS = 4


def held_out_measures(values: Tensor, returns: Tensor, mask: Tensor) -> dict[str, float]:
    """Value loss, explained variance (nan for constant returns) and value bias; all [B, T]."""
    chosen = mask != 0
    errors = values[chosen].double() - returns[chosen].double()
    return {
        "value_loss": 0.5 * (errors**2).mean().item(),
        "explained_variance": explained_variance(values, returns, mask),
        "value_bias": value_bias(values, returns, mask),
    }


def calibrate(
    rollouts: Sequence[Rollout], values: Sequence[Tensor], returns: Sequence[Tensor]
) -> dict[str, Any]:
    """All figures of a critic on rollouts, as JSON: overall, by position (share of the response and token
    number), by correctness, by length.

    values, returns: one tensor a rollout, one number a response token.
    """
    padded_values, padded_returns, mask = (
        _pad(values),
        _pad(returns),
        _pad([torch.ones_like(v) for v in values]),
    )
    measures = held_out_measures(padded_values, padded_returns, mask)
    by_value = by_position(padded_values, mask, num_bins=NUM_BINS)
    by_return = by_position(padded_returns, mask, num_bins=NUM_BINS)
    right = [rollout.right for rollout in rollouts]
    return {
        "num_held_out": len(rollouts),
        **{name: _json(number) for name, number in measures.items()},
        "by_position": _bins(by_value.relative, by_return.relative),
        "by_token": _bins(by_value.absolute, by_return.absolute),
        "by_correctness": {
            "right": _group(values, returns, right),
            "wrong": _group(values, returns, [not flag for flag in right]),
        },
        "by_length": _by_length(values, returns),
    }


def gate(measured: Mapping[str, Any], limits: CriticGate) -> list[str]:
    """Reasons why PPO must not start from this critic; none: it may. A critic that adds variance, or whose
    bias pushes the policy towards short or long responses, is worse than none."""
    reasons = []
    variance, bias = measured["explained_variance"], measured["value_bias"]
    least = limits.min_explained_variance
    if least is not None and variance is None:
        reasons.append("explained variance is undefined: every held-out return is the same (a dead grader?)")
    elif least is not None and variance < least:
        reasons.append(f"explained variance {variance:.3f} is below {least} (min_explained_variance)")
    if bias is None or abs(bias) > limits.max_abs_value_bias:
        size = "not finite" if bias is None else f"{bias:+.3f}"
        reasons.append(
            f"value bias is {size}, allowed is at most {limits.max_abs_value_bias} (max_abs_value_bias)"
        )
    return reasons


def _bins(values: Sequence[PositionBin], returns: Sequence[PositionBin]) -> list[dict[str, Any]]:
    return [
        {"position": (v.start + v.stop) / 2, "value": v.mean, "return": r.mean, "count": v.count}
        for v, r in zip(values, returns, strict=True)
        if v.count
    ]


def _by_length(values: Sequence[Tensor], returns: Sequence[Tensor]) -> list[dict[str, Any]]:
    order = sorted(range(len(values)), key=lambda i: len(values[i]))
    groups = []
    for part in range(NUM_LENGTH_GROUPS):
        first, last = part * len(order) // NUM_LENGTH_GROUPS, (part + 1) * len(order) // NUM_LENGTH_GROUPS
        chosen = set(order[first:last])
        group = _group(values, returns, [i in chosen for i in range(len(values))])
        if group:
            lengths = [len(values[i]) for i in chosen]
            groups.append({"shortest": min(lengths), "longest": max(lengths), **group})
    return groups


def _group(
    values: Sequence[Tensor], returns: Sequence[Tensor], chosen: Sequence[bool]
) -> dict[str, Any] | None:
    """Mean value, return and bias over the tokens of some rollouts; None if there are none."""
    v = [tensor for tensor, flag in zip(values, chosen, strict=True) if flag]
    r = [tensor for tensor, flag in zip(returns, chosen, strict=True) if flag]
    if not v:
        return None
    value, target = torch.cat(v).double().mean().item(), torch.cat(r).double().mean().item()
    return {"num_rollouts": len(v), "value": value, "return": target, "value_bias": value - target}


def _pad(rows: Sequence[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)


def _json(number: float) -> float | None:
    return number if math.isfinite(number) else None
