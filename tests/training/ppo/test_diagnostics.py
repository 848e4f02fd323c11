"""What is measured of a batch: against figures worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from training.ppo.diagnostics import kl_to_sft, response_metrics, value_by_correctness, value_metrics
from training.ppo.stopping import stopping_metrics

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
JUNK = math.nan


def info(status: str, finish_reason: str = "stop") -> dict[str, Any]:
    return {"status": status, "finish_reason": finish_reason}


def test_critic_calibration_over_the_trainable_tokens() -> None:
    values = torch.tensor([[0.0, 0.5, 1.0, 1.0], [0.0, -1.0, JUNK, JUNK]])
    returns = torch.tensor([[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, JUNK, JUNK]])
    found = value_metrics(values, returns, returns - values, MASK)
    assert found["critic/value_bias"] == pytest.approx((1.5 - 2.0) / 6)
    assert found["critic/value_mean"] == pytest.approx(1.5 / 6)
    assert found["critic/return_mean"] == pytest.approx(2.0 / 6)
    assert found["position/value_0"] == pytest.approx(0.0)
    assert found["position/advantage_0"] == pytest.approx(0.0)  # +1 and -1
    assert found["position/return_7"] == 1.0


def test_a_value_that_is_not_finite_shows_in_the_metrics() -> None:
    values = torch.tensor([[0.0, math.inf, 1.0, 1.0], [0.0, -1.0, 0.0, 0.0]])
    found = value_metrics(values, torch.ones(2, 4), torch.ones(2, 4), MASK)
    assert not math.isfinite(found["critic/value_mean"])


def test_values_of_right_and_wrong_responses_are_told_apart() -> None:
    values = torch.tensor([[1.0, 1.0, 1.0, 0.6], [-1.0, 0.0, JUNK, JUNK]])
    right = torch.tensor([True, False])
    assert value_by_correctness(values, right, MASK) == pytest.approx(
        {"critic/value_mean_right": 0.9, "critic/value_mean_wrong": -0.5}
    )
    assert value_by_correctness(values, ~right[[0, 0]], MASK).keys() == {"critic/value_mean_wrong"}


def test_kl_is_zero_for_equal_policies_and_never_negative() -> None:
    log_probs = torch.tensor([[-1.0, -0.2, -3.0, -0.5], [-0.1, -0.7, JUNK, JUNK]])
    assert kl_to_sft(log_probs, log_probs, MASK) == 0.0
    moved = log_probs + math.log(2.0)  # the SFT policy gives each sampled token twice the probability
    assert kl_to_sft(log_probs, moved, MASK) == pytest.approx(1.0 - math.log(2.0))
    assert kl_to_sft(log_probs, log_probs - 0.3, MASK) > 0


def test_lengths_by_correctness_and_rates() -> None:
    infos = [info("right"), info("wrong"), info("no_answer"), info("truncated", "length")]
    assert response_metrics(torch.tensor([8, 4, 6, 20]), infos) == {
        "response/accuracy": 0.25,
        "response/length": 9.5,
        "response/length_right": 8.0,
        "response/length_wrong": 10.0,
        "response/truncation_rate": 0.25,
        "response/answer_rate": 0.5,
    }


ANSWER, STEP, END = 9, 1, 2


def stopping(rows: list[list[int]], advantages: list[list[float]] | None = None) -> dict[str, float]:
    """Steps of two tokens, three of them in a whole response."""
    width = max(len(row) for row in rows)
    padded = torch.tensor([row + [ANSWER] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    given = None if advantages is None else torch.tensor([a + [JUNK] * (width - len(a)) for a in advantages])
    return stopping_metrics(padded, mask, given, answer_token_id=ANSWER, step_tokens=2, num_steps=3)


def test_stopping_counts_boundaries_before_the_last_step_only() -> None:
    whole = [STEP, STEP, STEP, STEP, STEP, STEP, ANSWER, END]
    early = [STEP, STEP, ANSWER, END]
    at_once = [ANSWER, END]
    # visited: whole 3 boundaries, early 2, at_once 1; stopped at 2 of 6
    assert stopping([whole, early, at_once]) == {"stopping/hazard": pytest.approx(2 / 6)}
    assert stopping([whole]) == {"stopping/hazard": 0.0}, "answering after the last step is no early stop"


def test_an_answer_that_repeats_its_first_token_stops_once() -> None:
    assert stopping([[ANSWER, END, ANSWER, END, ANSWER, END]])["stopping/hazard"] == 1.0


def test_the_advantage_of_stopping_is_compared_with_going_on() -> None:
    found = stopping(
        [[STEP, STEP, ANSWER, END], [STEP, STEP, STEP, STEP, STEP, STEP, ANSWER, END]],
        [[0.5, 7.0, 2.0, 7.0], [0.0, 7.0, 0.1, 7.0, 0.2, 7.0, 7.0, 7.0]],
    )
    assert found["stopping/advantage_stop"] == pytest.approx(2.0)
    assert found["stopping/advantage_go_on"] == pytest.approx((0.5 + 0.0 + 0.1 + 0.2) / 4)
    assert found["stopping/advantage"] == pytest.approx(1.8)
