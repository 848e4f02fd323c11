"""Equality with verl's own functions. The only module here that imports verl, which takes half a minute."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor

from training.algorithms import decoupled_gae, whiten
from training.algorithms.blocked_scan import blocked_gae


@pytest.fixture(scope="module")
def core_algos() -> ModuleType:
    from verl.trainer.ppo import core_algos

    return core_algos


def batch_with_holes(seed: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rewards, values = (torch.randn(6, width, generator=generator) for _ in range(2))
    mask = (torch.rand(6, width, generator=generator) > 0.3) & (torch.arange(width) < width - 2)
    mask[0] = True  # one response without holes or padding
    return rewards, values, mask.long()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (1.0, 1.0), (0.97, 0.9), (0.9, 0.0), (0.0, 0.5)])
def test_equal_lambdas_give_what_verl_gives(
    core_algos: ModuleType, seed: int, gamma: float, lam: float
) -> None:
    rewards, values, mask = batch_with_holes(seed, width=64)
    expected_whitened, expected_returns = core_algos.compute_gae_advantage_return(
        rewards.double(), values.double(), mask, gamma, lam
    )
    selected = mask != 0
    by_matrix_products = blocked_gae(rewards, values, mask, gamma, torch.full((6,), lam).double(), lam)[:2]
    for advantages, returns in (
        decoupled_gae(rewards, values, mask, gamma=gamma, lam_actor=lam, lam_critic=lam),
        by_matrix_products,
    ):
        whitened = whiten(advantages, mask)
        torch.testing.assert_close(
            whitened[selected].double(), expected_whitened[selected], rtol=1e-5, atol=1e-5
        )
        torch.testing.assert_close(
            returns[selected].double(), expected_returns[selected], rtol=1e-5, atol=1e-5
        )


def test_decoupled_is_verls_function_called_once_for_each_lambda(core_algos: ModuleType) -> None:
    rewards, values, mask = batch_with_holes(3, width=500)
    selected = mask != 0
    whitened = core_algos.compute_gae_advantage_return(rewards, values, mask, 1.0, 0.95)[0]
    returns = core_algos.compute_gae_advantage_return(rewards, values, mask, 1.0, 1.0)[1]
    ours = decoupled_gae(rewards, values, mask, gamma=1.0, lam_actor=0.95, lam_critic=1.0)
    torch.testing.assert_close(whiten(ours[0], mask)[selected], whitened[selected], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours[1][selected], returns[selected], rtol=1e-5, atol=2e-5)


def test_whitening_is_verls_masked_whiten(core_algos: ModuleType) -> None:
    advantages, _, mask = batch_with_holes(5, width=40)
    expected = core_algos.verl_F.masked_whiten(advantages.double() * 7 + 3, mask)
    selected = mask != 0
    ours = whiten(advantages * 7 + 3, mask)
    torch.testing.assert_close(ours[selected].double(), expected[selected], rtol=1e-5, atol=1e-5)
