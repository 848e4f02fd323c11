"""Decoupled generalised advantage estimation (VC-PPO, arXiv 2503.01491; GAE, arXiv 1506.02438, eq. 16).

    delta_t = r_t + gamma V_{t+1} - V_t
    advantages_t = sum_l (gamma lam_actor)^l delta_{t+l}
    returns_t = V_t + sum_l (gamma lam_critic)^l delta_{t+l}

Two lambdas instead of one: a policy signal of low variance (lam_actor < 1), and value targets that neither
decay the reward of the last token nor learn from the critic's own errors (lam_critic = 1: Monte Carlo).
V after the last trainable token is 0. Sums run over the trainable tokens of a row: a slot that is masked in
between (tool output) is skipped and counts no lambda step, as in verl's `compute_gae_advantage_return`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.algorithms import checks
from training.algorithms.blocked_scan import blocked_gae
from training.algorithms.compiled_scan import compiled_gae


def decoupled_gae(
    token_level_rewards: Tensor,
    values: Tensor,
    response_mask: Tensor,
    *,
    gamma: float = 1.0,
    lam_actor: float | Tensor = 0.95,
    lam_critic: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """(advantages, returns), both [batch, response], not whitened, without gradient, 0 in masked slots.

    token_level_rewards, values: [batch, response]; half precision is returned as float32.
    response_mask: [batch, response], any type, not zero = trainable.
    gamma, lam_actor (a number, or one a response [batch]), lam_critic: in [0, 1].
    On a CPU a compiled scan, elsewhere matrix products; both carry float64.

    Raises ConfigurationError (coefficients) and DataError (shapes, devices, no trainable token), ValueErrors.
    """
    gamma = checks.unit_interval("gamma", gamma)
    lam_critic = checks.unit_interval("lam_critic", lam_critic)
    checks.same_shape(token_level_rewards=token_level_rewards, values=values, response_mask=response_mask)
    batch_size, device = len(values), values.device
    if isinstance(lam_actor, Tensor) and lam_actor.ndim > 0:
        lam_actor = checks.unit_interval_per_row("lam_actor", lam_actor, batch_size).to(device)
    else:
        number = checks.unit_interval("lam_actor", lam_actor)
        lam_actor = torch.full((batch_size,), number, dtype=torch.float64, device=device)
    dtype = torch.promote_types(torch.promote_types(token_level_rewards.dtype, values.dtype), torch.float32)
    rewards, values = (x.detach().to(dtype).contiguous() for x in (token_level_rewards, values))

    scan = compiled_gae if device.type == "cpu" else blocked_gae
    advantages, returns, num_trainable = scan(
        rewards, values, response_mask.detach(), gamma, lam_actor.contiguous(), lam_critic
    )
    if num_trainable == 0:
        raise checks.all_masked(response_mask)
    return advantages, returns
