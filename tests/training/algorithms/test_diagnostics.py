"""Explained variance, value bias and profiles by position."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict

import pytest
import torch

from training.algorithms import PositionBin, by_position, explained_variance, value_bias
from vcppo.errors import ConfigurationError, DataError

RETURNS = torch.tensor([[1.0, -1.0, 3.0, math.nan], [5.0, math.inf, 1.0, -3.0]])
MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 1]])


def test_explained_variance_of_a_perfect_a_constant_and_a_contrary_critic() -> None:
    assert explained_variance(RETURNS, RETURNS, MASK) == 1.0
    assert explained_variance(torch.full((2, 4), 9.0), RETURNS, MASK) == pytest.approx(0.0)
    assert explained_variance(-RETURNS, RETURNS, MASK) == pytest.approx(-3.0)
    assert explained_variance(RETURNS + 100.0, RETURNS, MASK) == pytest.approx(1.0)


def test_explained_variance_of_constant_returns_is_undefined() -> None:
    returns = torch.full((2, 4), 0.1) + torch.tensor([0.0, 1e-8, -1e-8, 0.0])
    assert math.isnan(explained_variance(torch.randn(2, 4), returns, torch.ones(2, 4)))


def test_value_bias_is_negative_for_a_critic_that_is_too_low() -> None:
    assert value_bias(RETURNS - 2.5, RETURNS, MASK) == pytest.approx(-2.5)
    assert value_bias(RETURNS, RETURNS, MASK) == 0.0


def test_by_position_counts_trainable_tokens_only() -> None:
    junk = math.nan
    quantity = torch.tensor([[0.0, junk, 1.0, 2.0, 3.0], [10.0, 20.0, junk, junk, junk]])
    mask = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 0, 0, 0]])
    profile = by_position(quantity, mask, num_bins=2)
    assert profile.absolute == (PositionBin(0, 2, 4, 31.0 / 4), PositionBin(2, 4, 2, 2.5))
    # Half of four tokens is two, half of two is one.
    assert profile.relative == (PositionBin(0.0, 0.5, 3, 11.0 / 3), PositionBin(0.5, 1.0, 3, 25.0 / 3))


def test_neither_holes_nor_padding_shift_a_position() -> None:
    dense = torch.arange(12.0).view(2, 6)
    spread = torch.full((2, 20), math.inf)
    where = [1, 2, 5, 9, 10, 14]
    spread[:, where] = dense
    mask = torch.zeros(2, 20).long()
    mask[:, where] = 1
    assert by_position(spread, mask, num_bins=3) == by_position(dense, torch.ones(2, 6), num_bins=3)


def test_bins_of_fixed_width_and_bins_without_a_token() -> None:
    profile = by_position(torch.ones(1, 3), torch.ones(1, 3), num_bins=5, tokens_per_bin=2)
    assert [(b.start, b.stop, b.count) for b in profile.absolute] == [(0, 2, 2), (2, 4, 1)]
    assert [b.count for b in profile.relative] == [1, 1, 0, 1, 0]
    assert profile.relative[2].mean is None
    json.dumps(asdict(profile), allow_nan=False)


@pytest.mark.parametrize("setting", [{"num_bins": 0}, {"num_bins": 2.5}, {"tokens_per_bin": -1}])
def test_bins_must_be_positive_integers(setting: dict) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(setting))} is"):
        by_position(torch.ones(1, 3), torch.ones(1, 3), **setting)


@pytest.mark.parametrize("diagnostic", [explained_variance, value_bias])
def test_shapes_that_differ_and_a_wholly_masked_batch_are_refused(diagnostic: Callable[..., float]) -> None:
    with pytest.raises(DataError, match=r"returns \[2, 3\]"):
        diagnostic(torch.ones(2, 4), torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(DataError, match="selects no token"):
        diagnostic(torch.ones(2, 4), torch.ones(2, 4), torch.zeros(2, 4))
