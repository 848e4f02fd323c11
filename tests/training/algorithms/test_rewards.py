"""Where the score goes, and which responses were cut."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training.algorithms import check_reward_sums, cut_by_length, place_score_on_last_token
from vcppo.errors import DataError

masks = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=5)
)


@settings(deadline=None)
@given(rows=masks, seed=st.integers(0, 100))
def test_the_score_sits_on_the_last_trainable_token_and_rewards_sum_to_it(rows: list, seed: int) -> None:
    mask = torch.tensor([*rows, [True] * len(rows[0])]).long()
    scores = torch.randn(len(mask), generator=torch.Generator().manual_seed(seed))
    rewards = place_score_on_last_token(scores, mask)
    for row in range(len(mask)):
        tokens = mask[row].nonzero().flatten().tolist()
        expected = torch.zeros(mask.shape[1])
        if tokens:
            expected[tokens[-1]] = scores[row]
            assert (rewards[row] * mask[row]).sum() == scores[row]
        assert torch.equal(rewards[row], expected)


def test_a_response_that_ends_in_tool_output_is_rewarded_before_it() -> None:
    mask = torch.tensor([[1, 1, 0, 1, 0, 0]])
    assert place_score_on_last_token(torch.tensor([-1.0]), mask).tolist() == [[0.0, 0.0, 0.0, -1.0, 0.0, 0.0]]


def test_integer_scores_become_float32() -> None:
    rewards = place_score_on_last_token(torch.tensor([1]), torch.tensor([[True, True]]))
    assert rewards.dtype == torch.float32 and rewards.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_an_ungraded_response_is_refused_not_scored(score: float) -> None:
    with pytest.raises(DataError, match=rf"scores\[1\] is {score}"):
        place_score_on_last_token(torch.tensor([1.0, score]), torch.ones(2, 3))


def test_shapes_that_do_not_fit_and_a_wholly_masked_batch_are_refused() -> None:
    with pytest.raises(DataError, match=r"scores \[3\], response_mask \[2, 4\]"):
        place_score_on_last_token(torch.ones(3), torch.ones(2, 4))
    with pytest.raises(DataError, match="selects no token"):
        place_score_on_last_token(torch.ones(2), torch.zeros(2, 4))


def test_a_score_that_lies_where_no_token_learns_is_refused() -> None:
    mask = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    scores = torch.tensor([1.0, -1.0, 1.0])
    right = place_score_on_last_token(scores, mask)
    check_reward_sums(right, mask, scores)
    check_reward_sums(torch.where(mask != 0, right, torch.nan), mask, scores)
    beside = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    with pytest.raises(DataError, match=r"rewards of response 1 sum to 0 over its mask, its score is -1"):
        check_reward_sums(beside, mask, scores)


def test_a_cut_response_is_told_by_its_finish_reason() -> None:
    assert cut_by_length(["stop", "length", "abort"]).tolist() == [False, True, False]
    assert cut_by_length([]).tolist() == []
