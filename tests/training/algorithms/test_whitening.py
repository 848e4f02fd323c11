"""Whitening over the trainable tokens (its equality with verl is in test_against_verl)."""

from __future__ import annotations

import math

import pytest
import torch

from training.algorithms import whiten
from vcppo.errors import DataError


def test_trainable_tokens_get_mean_0_and_deviation_1_and_the_others_0() -> None:
    mask = (torch.rand(8, 100, generator=torch.Generator().manual_seed(0)) > 0.4).long()
    advantages = 1e4 + 5 * torch.randn(8, 100, generator=torch.Generator().manual_seed(1))
    advantages[mask == 0] = math.nan
    whitened = whiten(advantages, mask)
    chosen = whitened[mask != 0].double()
    assert chosen.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert chosen.std().item() == pytest.approx(1.0, abs=1e-6)
    assert torch.count_nonzero(whitened[mask == 0]) == 0


def test_equal_advantages_and_a_single_token_become_0() -> None:
    assert whiten(torch.full((2, 3), 7.0), torch.ones(2, 3)).tolist() == [[0.0] * 3] * 2
    assert whiten(torch.tensor([[7.0, math.inf]]), torch.tensor([[1, 0]])).tolist() == [[0.0, 0.0]]


def test_bfloat16_advantages_come_out_as_float32() -> None:
    whitened = whiten(torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.bfloat16), torch.ones(1, 3))
    torch.testing.assert_close(whitened, torch.tensor([[-1.0, 0.0, 1.0]]))


def test_a_batch_without_a_trainable_token_and_shapes_that_differ_are_refused() -> None:
    with pytest.raises(DataError, match="selects no token"):
        whiten(torch.ones(2, 3), torch.zeros(2, 3))
    with pytest.raises(DataError, match=r"advantages \[2, 3\], response_mask \[2, 4\]"):
        whiten(torch.ones(2, 3), torch.ones(2, 4))
