"""What is measured of each training batch: is the critic calibrated, where, and what does the policy do with
it?

The value bias and its place (early or late tokens) are what VC-PPO is about (arXiv 2503.01491, section 3.1);
explained
variance alone stays near zero on tasks whose outcome is hard to foresee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from training.algorithms import by_position, explained_variance, value_bias

NUM_BINS = 10


def value_metrics(
    values: torch.Tensor, returns: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor
) -> dict[str, float]:
    """Calibration of the critic on a batch; all arguments `[B, T]`, advantages before whitening."""
    metrics = {
        "critic/explained_variance": explained_variance(values, returns, mask),
        "critic/value_bias": value_bias(values, returns, mask),
        "critic/value_mean": _masked_mean(values, mask),
        "critic/return_mean": _masked_mean(returns, mask),
        "critic/advantage_std": float(advantages[mask.bool()].std()) if int(mask.sum()) > 1 else 0.0,
    }
    for name, quantity in (("value", values), ("return", returns), ("advantage", advantages)):
        for index, bin_ in enumerate(by_position(quantity, mask, num_bins=NUM_BINS).relative):
            if bin_.mean is not None:
                metrics[f"position/{name}_{index}"] = bin_.mean
    return metrics


def response_metrics(lengths: torch.Tensor, infos: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What the responses are like: `lengths` int64 `[B]`, `infos` the reward_extra_info of each."""
    right = torch.tensor([info["status"] == "right" for info in infos])
    metrics = {
        "response/accuracy": float(right.float().mean()),
        "response/length": float(lengths.float().mean()),
        "response/truncation_rate": _rate(infos, "finish_reason", "length"),
        "response/answer_rate": 1.0
        - _rate(infos, "status", "no_answer")
        - _rate(infos, "status", "truncated"),
    }
    if bool(right.any()):
        metrics["response/length_right"] = float(lengths[right].float().mean())
    if bool((~right).any()):
        metrics["response/length_wrong"] = float(lengths[~right].float().mean())
    return metrics


def _rate(infos: Sequence[Mapping[str, Any]], key: str, value: str) -> float:
    return sum(info[key] == value for info in infos) / len(infos)


def _masked_mean(quantity: torch.Tensor, mask: torch.Tensor) -> float:
    return float(quantity[mask.bool()].mean())
