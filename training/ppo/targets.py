"""From a batch's rewards and values to what actor and critic learn from, and what is measured on the way.

Tensors in, tensors out: the trainer fetches the columns and stores them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from training.algorithms import decoupled_gae, length_adaptive_lambda, whiten
from training.ppo.diagnostics import kl_to_sft, value_by_correctness, value_metrics
from training.ppo.lambda_fallback import LambdaFallback
from training.ppo.policy_loss import WEIGHT_COLUMN, language_model_weights
from training.ppo.stopping import stopping_metrics
from vcppo.config.train import GaeConfig, StoppingConfig


@dataclass(frozen=True)
class TargetSettings:
    gae: GaeConfig
    language_model_loss: float
    stopping: StoppingConfig | None
    answer_token_id: int | None
    """Of `stopping.answer_token`, in the policy's tokenizer."""


def make_targets(
    batch: Mapping[str, torch.Tensor], right: torch.Tensor, settings: TargetSettings, fallback: LambdaFallback
) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """(columns, metrics) of a batch; columns `[B, T]`, as verl's workers read them.

    batch: `response_mask`, `responses`; with a critic `rm_scores` and `values`, which give `advantages`
    (lam_actor) and `returns` (lam_critic); with a reference model `old_log_probs` and `ref_log_prob`. All
    `[B, T]`. right: bool `[B]`, the responses that the grader accepts.
    """
    mask = batch["response_mask"]
    columns: dict[str, torch.Tensor] = {}
    metrics: dict[str, float] = {}
    raw_advantages = None
    if "values" in batch:
        raw_advantages, columns["returns"] = _decoupled_gae(batch, settings.gae, fallback, metrics)
        columns["advantages"] = whiten(raw_advantages, mask) if settings.gae.whiten else raw_advantages
        metrics |= value_by_correctness(batch["values"].float(), right, mask)
    if "ref_log_prob" in batch:
        metrics["actor/kl_to_sft"] = kl_to_sft(batch["old_log_probs"], batch["ref_log_prob"], mask)
    if settings.language_model_loss > 0:
        columns[WEIGHT_COLUMN] = language_model_weights(right, mask, settings.language_model_loss)
    if settings.stopping is not None and settings.answer_token_id is not None:
        metrics |= stopping_metrics(
            batch["responses"],
            mask,
            raw_advantages,
            answer_token_id=settings.answer_token_id,
            step_tokens=settings.stopping.step_tokens,
            num_steps=settings.stopping.num_steps,
        )
    return columns, metrics


def _decoupled_gae(
    batch: Mapping[str, torch.Tensor], gae: GaeConfig, fallback: LambdaFallback, metrics: dict[str, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    mask, values = batch["response_mask"], batch["values"].float()
    lam_actor: Any = gae.lam_actor
    if lam_actor == "length_adaptive":
        lam_actor = length_adaptive_lambda(mask.sum(-1), gae.length_adaptive_alpha)
    lam_actor = fallback.apply(lam_actor)
    advantages, returns = decoupled_gae(
        batch["rm_scores"], values, mask, gamma=gae.gamma, lam_actor=lam_actor, lam_critic=gae.lam_critic
    )
    metrics |= value_metrics(values, returns, advantages, mask)
    metrics["gae/lam_actor"] = float(torch.as_tensor(lam_actor).mean())
    metrics["gae/fallback_level"] = float(fallback.level)
    return advantages, returns
