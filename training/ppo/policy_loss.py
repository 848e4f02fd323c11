"""VAPO's policy loss: verl's clipped surrogate plus a language-model loss on correct samples.

    L = L_clip + mu * L_LM,   L_LM = -1/N_right * sum over the tokens of right responses of log pi(a_t | s_t)

(arXiv 2504.05118, section 4.3; mu = 0.1). Registered with verl's public `register_policy_loss`, which hands a
loss one column of the batch beyond PPO's own: `rollout_is_weights`, one number a token. This product samples
and trains with the same weights and needs no importance weights there, so the column carries the weight of
each token in L_LM: `language_model_weights`. Worker processes import this module through verl's
`actor_rollout_ref.model.external_lib`.
"""

from __future__ import annotations

from typing import Any

import torch
from verl.trainer.ppo.core_algos import agg_loss, compute_policy_loss_vanilla, register_policy_loss

LOSS_MODE = "clip_and_language_model"
WEIGHT_COLUMN = "rollout_is_weights"


def language_model_weights(right: torch.Tensor, mask: torch.Tensor, coefficient: float) -> torch.Tensor:
    """Weight of each token in a loss that is averaged over all tokens: float32 `[B, T]`, 0 where masked.

    right: bool `[B]`; mask: `[B, T]`. A token of a right response gets coefficient * N / N_right, so that the
    average over all N tokens of the step is `coefficient` times the mean over the N_right.
    """
    chosen = (mask != 0) & right[:, None]
    num_chosen = int(chosen.sum())
    if num_chosen == 0:
        return torch.zeros(mask.shape)
    return chosen.float() * (coefficient * int((mask != 0).sum()) / num_chosen)


@register_policy_loss(LOSS_MODE)
def clip_and_language_model_loss(
    old_log_prob: torch.Tensor,
    log_prob: torch.Tensor,
    advantages: torch.Tensor,
    response_mask: torch.Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """verl's PolicyLossFn; all tensors `[B, T]` of a micro-batch, rollout_is_weights as told above."""
    assert rollout_is_weights is not None, "the trainer puts the column before it updates the actor"
    clip_loss, metrics = compute_policy_loss_vanilla(
        old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, None
    )
    weighted = -log_prob * rollout_is_weights
    # whatever the clipped loss is averaged over, L_LM is a mean over tokens
    language_model_loss = agg_loss(weighted, response_mask, "token-mean", **config.global_batch_info)
    metrics["actor/lm_loss"] = _local_mean(weighted, response_mask)
    return clip_loss + language_model_loss, metrics


def _local_mean(quantity: torch.Tensor, mask: torch.Tensor) -> float:
    """verl averages this over micro-batches, so it is a mean over this one's tokens."""
    return float((quantity * mask).sum().detach() / mask.sum().clamp_min(1))
