"""lam_actor moves towards 1 while explained variance is gone, and back once it returns."""

from __future__ import annotations

import math

import pytest
import torch

from training.ppo.lambda_fallback import LambdaFallback
from vcppo.config.train import LambdaFallbackConfig

CONFIG = LambdaFallbackConfig(min_explained_variance=0.0, steps=3)


def lambdas(explained: list[float | None], start: float = 0.9) -> list[float]:
    """lam_actor of the step after each observed one."""
    fallback = LambdaFallback(CONFIG)
    found = []
    for value in explained:
        fallback.observe(value)
        found.append(fallback.apply(start))
    return found


def test_each_step_after_the_third_below_the_threshold_halves_the_distance_to_one() -> None:
    assert lambdas([0.2, -0.1, -0.1, -0.1, -0.1]) == pytest.approx([0.9, 0.9, 0.9, 0.95, 0.975])


def test_it_comes_back_one_halving_a_step() -> None:
    assert lambdas([-1, -1, -1, -1, 0.1, 0.1, 0.1]) == pytest.approx([0.9, 0.9, 0.95, 0.975, 0.95, 0.9, 0.9])


def test_after_five_halvings_it_is_one_and_a_long_bad_time_delays_no_recovery() -> None:
    found = lambdas([-1.0] * 40 + [0.1] * 5)
    assert found[6:40] == [1.0] * 34 and found[5] == pytest.approx(1 - 0.1 / 16)
    assert found[40:] == pytest.approx([1 - 0.1 / 16, 1 - 0.1 / 8, 0.975, 0.95, 0.9])


def test_constant_returns_change_nothing() -> None:
    assert lambdas([-1, -1, math.nan, None, -1, math.nan]) == pytest.approx([0.9] * 4 + [0.95] * 2)


def test_every_response_keeps_a_lambda_of_its_own() -> None:
    fallback = LambdaFallback(CONFIG)
    fallback.replay([{"critic/explained_variance": value} for value in (-1.0, -1.0, -1.0)])
    torch.testing.assert_close(fallback.apply(torch.tensor([0.0, 0.8, 1.0])), torch.tensor([0.5, 0.9, 1.0]))


def test_without_the_option_lambda_stays() -> None:
    fallback = LambdaFallback(None)
    fallback.replay([{"critic/explained_variance": -9.0}] * 9)
    assert fallback.apply(0.95) == 0.95
