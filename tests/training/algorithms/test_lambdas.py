"""The length-adaptive lambda of VAPO."""

from __future__ import annotations

import math

import pytest
import torch

from training.algorithms import decoupled_gae, length_adaptive_lambda
from vcppo.errors import ConfigurationError, DataError


def test_the_rule_of_the_paper() -> None:
    lengths = torch.tensor([40, 100, 1000, 10_000])
    expected = torch.tensor([0.5, 0.8, 0.98, 0.998])
    torch.testing.assert_close(length_adaptive_lambda(lengths, alpha=0.05), expected)


def test_short_and_empty_responses_are_clamped_to_zero() -> None:
    assert length_adaptive_lambda(torch.tensor([0, 1, 19, 20]), 0.05).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert 0.0 < length_adaptive_lambda(torch.tensor([21]), 0.05).item() < 0.05


def test_the_weights_of_gae_sum_to_alpha_times_the_length() -> None:
    lam = length_adaptive_lambda(torch.tensor([5000]), 0.05).double().item()
    assert sum(lam**step for step in range(5000)) == pytest.approx(0.05 * 5000, rel=1e-4)


def test_it_serves_as_lam_actor() -> None:
    mask = (torch.arange(30) < torch.tensor([[30], [10], [0]])).long()
    rewards, values = torch.ones(3, 30), torch.zeros(3, 30)
    lams = length_adaptive_lambda(mask.sum(dim=1))
    advantages, _ = decoupled_gae(rewards, values, mask, lam_actor=lams)
    assert advantages[0, 0].item() == pytest.approx(
        sum(lams[0].item() ** step for step in range(30)), rel=1e-5
    )
    assert advantages[1, :10].tolist() == [1.0] * 10


@pytest.mark.parametrize("alpha", [0.0, -0.05, math.nan, math.inf, "0.05", None, True])
def test_alpha_must_be_a_finite_number_above_zero(alpha: object) -> None:
    with pytest.raises(ConfigurationError, match=f"alpha is {alpha!r}; allowed is a finite number > 0"):
        length_adaptive_lambda(torch.tensor([100]), alpha)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [-1.0, math.nan])
def test_lengths_must_not_be_negative(length: float) -> None:
    with pytest.raises(DataError, match=f"response_lengths holds {length}"):
        length_adaptive_lambda(torch.tensor([10.0, length]))
