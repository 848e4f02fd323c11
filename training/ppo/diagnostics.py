"""What is measured of each training batch: is the critic calibrated, where, and what does the policy do with
it?

The value bias and its place (early or late tokens) are what VC-PPO is about (arXiv 2503.01491, section 3.1);
explained variance alone stays near zero on tasks whose outcome is hard to foresee. verl adds losses, gradient
norms, clip fractions, the KL within a step, entropy, throughput and the seconds of each phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from training.algorithms import by_position, explained_variance, value_bias
from vcppo.grading.result import ANSWERED

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


def value_by_correctness(values: torch.Tensor, right: torch.Tensor, mask: torch.Tensor) -> dict[str, float]:
    """Mean value of right and of wrong responses: a good critic tells them apart. `[B, T]`, right `[B]`."""
    metrics = {}
    for name, rows in (("right", right), ("wrong", ~right)):
        if bool(mask[rows].any()):
            metrics[f"critic/value_mean_{name}"] = _masked_mean(values[rows], mask[rows])
    return metrics


def kl_to_sft(log_probs: torch.Tensor, ref_log_probs: torch.Tensor, mask: torch.Tensor) -> float:
    """KL of the sampling policy to the SFT policy in nats a token, from its samples; all `[B, T]`.

    The low-variance estimator r - 1 - log r with r = p_sft / p (k3, http://joschu.net/blog/kl-approx.html).
    Measured only where a reference model is loaded (train.actor.kl_coefficient or measure_kl_to_sft): the
    probabilities of the SFT policy cannot be had without it.
    """
    log_ratio = (ref_log_probs - log_probs)[mask.bool()].double().clamp(-20.0, 20.0)
    return float((log_ratio.exp() - 1.0 - log_ratio).mean())


def response_metrics(lengths: torch.Tensor, infos: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What the responses are like: `lengths` int64 `[B]`, `infos` the reward_extra_info of each."""
    right = torch.tensor([info["status"] == "right" for info in infos])
    metrics = {
        "response/accuracy": float(right.float().mean()),
        "response/length": float(lengths.float().mean()),
        "response/truncation_rate": _rate(infos, "finish_reason", "length"),
        "response/answer_rate": sum(info["status"] in ANSWERED for info in infos) / len(infos),
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
