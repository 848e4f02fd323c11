"""Figures of a critic, and its gate."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tests.training.finetune import small
from training.finetune.calibration import calibrate, gate
from vcppo.config.stages import CriticGate


def figures(**values: Any) -> dict[str, Any]:
    return {"explained_variance": 0.1, "value_bias": 0.0, **values}


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (figures(), []),
        (figures(explained_variance=-0.2), ["explained variance -0.200 is below 0.0"]),
        (figures(value_bias=-0.6), ["value bias is -0.600, allowed is at most 0.5"]),
        (figures(value_bias=0.6), ["value bias is +0.600"]),
        (figures(explained_variance=None), ["every held-out return is the same"]),
        (figures(explained_variance=-1.0, value_bias=None), ["explained variance", "not finite"]),
    ],
)
def test_the_gate_gives_every_reason(measured: dict[str, Any], words: list[str]) -> None:
    reasons = gate(measured, CriticGate(min_explained_variance=0.0, max_abs_value_bias=0.5))
    assert len(reasons) == len(words)
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_a_perfect_critic_explains_everything_everywhere() -> None:
    rollouts = small.make_rollouts()
    returns = [torch.full((len(r.response_ids),), r.score) for r in rollouts]
    measured = calibrate(rollouts, returns, returns)
    assert measured["explained_variance"] == pytest.approx(1.0)
    assert measured["value_bias"] == measured["value_loss"] == 0.0
    assert all(bin_["value"] == bin_["return"] for bin_ in measured["by_position"] + measured["by_token"])
    assert measured["by_correctness"]["right"]["value"] == 1.0
    assert measured["by_correctness"]["wrong"]["value"] == -1.0


def test_bins_and_groups_cover_every_token_once() -> None:
    rollouts = small.make_rollouts()
    tokens = sum(len(r.response_ids) for r in rollouts)
    values = [torch.zeros(len(r.response_ids)) for r in rollouts]
    measured = calibrate(rollouts, values, values)
    assert sum(bin_["count"] for bin_ in measured["by_position"]) == tokens
    assert sum(bin_["count"] for bin_ in measured["by_token"]) == tokens
    assert sum(group["num_rollouts"] for group in measured["by_length"]) == len(rollouts)
    assert all(0 < bin_["position"] < 1 for bin_ in measured["by_position"])


def test_a_bias_at_early_tokens_shows_there_and_nowhere_else() -> None:
    rollouts = small.make_rollouts()
    returns = [torch.zeros(len(r.response_ids)) for r in rollouts]
    values = [torch.tensor([-2.0] + [0.0] * (len(r.response_ids) - 1)) for r in rollouts]
    by_token = calibrate(rollouts, values, returns)["by_token"]
    assert by_token[0]["value"] == -2.0
    assert all(bin_["value"] == 0.0 for bin_ in by_token[1:])


def test_constant_returns_leave_explained_variance_open_and_the_figures_valid_json() -> None:
    rollouts = small.make_rollouts()
    ones = [torch.ones(len(r.response_ids)) for r in rollouts]
    measured = calibrate(rollouts, ones, ones)
    assert measured["explained_variance"] is None
    json.dumps(measured, allow_nan=False)


def test_an_undefined_explained_variance_is_refused_unless_it_is_not_asked_for() -> None:
    measured = {"explained_variance": None, "value_bias": 0.1}
    assert "undefined" in gate(measured, CriticGate())[0]
    assert gate(measured, CriticGate(min_explained_variance=None)) == []
