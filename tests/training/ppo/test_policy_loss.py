"""The language-model loss on correct samples, beside verl's clipped loss: value and gradient by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from training.ppo.verl_config import RunPaths
from vcppo.config import Config, Runtime, load_profile

pytestmark = pytest.mark.slow  # importing verl takes half a minute

MASK = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
LOG_PROB = torch.tensor([[-1.0, -2.0, -3.0], [-0.5, 0.0, 0.0], [-4.0, -1.0, 0.0]])
RIGHT = torch.tensor([True, False, True])


@pytest.fixture
def actor_config() -> Any:
    """verl's, for a mini-batch that is one micro-batch of the six tokens above."""
    from verl.workers.config import ActorConfig

    config = ActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_mini_batch_size=3,
        ppo_micro_batch_size_per_gpu=3,
        clip_ratio_high=0.28,
    )
    config.global_batch_info.update(
        dp_size=1, batch_num_tokens=6, global_batch_size=3, loss_scale_factor=None
    )
    return config


def test_weights_make_the_mean_over_all_tokens_one_over_the_right_ones() -> None:
    from training.ppo.policy_loss import language_model_weights

    weights = language_model_weights(RIGHT, MASK, 0.1)
    # six tokens, five of them in right responses
    assert weights.tolist() == pytest.approx(
        [pytest.approx([0.12, 0.12, 0.12]), pytest.approx([0, 0, 0]), pytest.approx([0.12, 0.12, 0])]
    )
    assert not language_model_weights(~RIGHT & RIGHT, MASK, 0.1).any(), "nothing right: no loss, no 0/0"


def test_loss_is_verls_clipped_loss_plus_the_weighted_negative_log_likelihood(actor_config: Any) -> None:
    from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla, get_policy_loss_fn

    from training.ppo.policy_loss import LOSS_MODE, language_model_weights

    advantages = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, 0.0], [-0.3, 0.2, 0.0]])
    weights = language_model_weights(RIGHT, MASK, 0.1)
    log_prob = (LOG_PROB + 0.05).requires_grad_()
    arguments = (LOG_PROB, log_prob, advantages, MASK.bool(), "token-mean", actor_config)
    clipped, _ = compute_policy_loss_vanilla(*arguments)
    loss, metrics = get_policy_loss_fn(LOSS_MODE)(*arguments, rollout_is_weights=weights)

    mean_of_right = -(log_prob.detach() * MASK)[RIGHT].sum() / 5
    torch.testing.assert_close((loss - clipped).detach(), 0.1 * mean_of_right)
    assert metrics["actor/lm_loss"] == pytest.approx(0.1 * float(mean_of_right))
    assert {"actor/pg_clipfrac", "actor/pg_clipfrac_lower", "actor/ppo_kl"} <= metrics.keys()
    gradient = torch.autograd.grad(loss - clipped, log_prob)[0]
    torch.testing.assert_close(gradient, -0.1 / 5 * MASK * RIGHT[:, None])


def test_the_column_never_weights_the_policy_gradient(actor_config: Any) -> None:
    """verl would multiply it into the clipped loss, where a wrong response's weight of 0 erased it."""
    from training.ppo.policy_loss import clip_and_language_model_loss

    advantages = torch.full((3, 3), -1.0)
    loss, _ = clip_and_language_model_loss(
        LOG_PROB, LOG_PROB, advantages, MASK.bool(), "token-mean", actor_config, torch.zeros(3, 3)
    )
    assert float(loss) == pytest.approx(1.0)


def test_the_worker_knows_the_loss_by_the_configured_name() -> None:
    from training.ppo import policy_loss
    from training.ppo.verl_config import verl_settings

    values = load_profile("tiny").model_dump()
    values["train"]["actor"] |= {"language_model_loss_coefficient": 0.1}
    found = verl_settings(Config.model_validate(values), Runtime(), RunPaths(*[Path("/x")] * 4))
    assert found["actor_rollout_ref.actor.policy_loss.loss_mode"] == policy_loss.LOSS_MODE
    assert found["actor_rollout_ref.model.external_lib"] == policy_loss.__name__
