"""What actor and critic learn from, out of one batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from training.ppo.lambda_fallback import MAX_LEVEL, LambdaFallback
from vcppo.config.train import GaeConfig, LambdaFallbackConfig, StoppingConfig

pytestmark = pytest.mark.slow  # importing verl takes half a minute

BATCH = {
    "response_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
    "responses": torch.tensor([[5, 9, 2], [9, 2, 0]]),
    "rm_scores": torch.tensor([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
    "values": torch.tensor([[0.0, 0.2, 0.4], [0.0, -0.2, 0.0]]),
    "old_log_probs": torch.zeros(2, 3),
    "ref_log_prob": torch.zeros(2, 3),
}
RIGHT = torch.tensor([True, False])


def made(names: str, fallback: LambdaFallback | None = None, **settings: Any) -> Any:
    from training.ppo.targets import TargetSettings, make_targets

    values = {"gae": GaeConfig(whiten=False), "language_model_loss": 0.0, "stopping": None}
    values |= {"answer_token_id": None} | settings
    batch = {name: BATCH[name] for name in names.split()}
    return make_targets(batch, RIGHT, TargetSettings(**values), fallback or LambdaFallback(None))


CRITIC = "response_mask responses rm_scores values"


def test_each_side_gets_its_own_lambda() -> None:
    columns, metrics = made(CRITIC, gae=GaeConfig(lam_actor=0.0, lam_critic=1.0, whiten=False))
    torch.testing.assert_close(columns["returns"], torch.tensor([[1.0, 1.0, 1.0], [-1.0, -1.0, 0.0]]))
    torch.testing.assert_close(columns["advantages"], torch.tensor([[0.2, 0.2, 0.6], [-0.2, -0.8, 0.0]]))
    assert metrics["gae/lam_actor"] == 0.0
    assert metrics["critic/value_bias"] == pytest.approx((0.6 - 3.0 - 0.2 + 2.0) / 5)


def test_the_fallback_moves_the_advantages_towards_monte_carlo() -> None:
    fallback = LambdaFallback(LambdaFallbackConfig(steps=1))
    for _ in range(60):
        fallback.observe(-1.0)
    gae = GaeConfig(lam_actor=0.0, lam_critic=1.0, whiten=False)
    columns, metrics = made(CRITIC, fallback, gae=gae)
    torch.testing.assert_close(columns["advantages"], columns["returns"] - BATCH["values"])
    assert (metrics["gae/lam_actor"], metrics["gae/fallback_level"]) == (1.0, MAX_LEVEL)


def test_whitening_is_of_the_advantages_not_of_what_is_measured() -> None:
    columns, metrics = made(CRITIC, gae=GaeConfig(whiten=True))
    chosen = columns["advantages"][BATCH["response_mask"].bool()]
    assert float(chosen.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(chosen.std()) == pytest.approx(1.0, abs=1e-4)
    assert metrics["critic/advantage_std"] != pytest.approx(1.0, abs=0.05)


def test_without_a_critic_only_what_the_tokens_tell_is_made() -> None:
    columns, metrics = made("response_mask responses", language_model_loss=0.1)
    assert columns.keys() == {"rollout_is_weights"}
    assert metrics == {}


def test_what_is_configured_is_measured() -> None:
    _, metrics = made(
        f"{CRITIC} old_log_probs ref_log_prob",
        stopping=StoppingConfig(step_tokens=1, num_steps=2, answer_token="?"),
        answer_token_id=9,
    )
    assert metrics["actor/kl_to_sft"] == 0.0
    assert metrics["stopping/hazard"] == pytest.approx(2 / 3)
