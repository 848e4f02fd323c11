"""Intervals of a share, and how many questions tell a difference; against scipy and hand-computed values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vcppo.errors import ConfigurationError, DataError
from vcppo.statistics import detectable_difference, questions_needed, wilson_interval


@given(st.integers(1, 400), st.data())
def test_wilson_interval_equals_scipys(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    theirs = stats.binomtest(c, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(c, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize(("c", "n"), [(-1, 5), (6, 5), (0, 0), ("1", 4), (1.0, 4), (None, 4), (math.nan, 4)])
def test_wilson_interval_refuses_impossible_counts(c: int, n: int) -> None:
    with pytest.raises(DataError, match="num_correct"):
        wilson_interval(c, n)


def test_wilson_interval_refuses_a_number_of_samples_that_is_no_integer() -> None:
    for n in ("4", 4.0, None, [4]):
        with pytest.raises(DataError, match=r"num_samples is .*; allowed is an integer"):
            wilson_interval(1, n)


def test_thirty_questions_tell_nineteen_points_and_three_points_need_1260_questions() -> None:
    variances = {"omega2": 1 / 9, "sigma2": 1 / 6}
    assert questions_needed(0.03, 10, **variances) == pytest.approx(1259.6967474881253, rel=1e-9)
    assert detectable_difference(30, 10, **variances) == pytest.approx(0.19439882310508919, rel=1e-9)


def test_the_difference_that_the_needed_questions_detect_is_the_one_asked_for() -> None:
    variances = {"omega2": 0.05, "sigma2": 0.2, "significance": 0.01, "power": 0.9}
    needed = questions_needed(0.05, 4, **variances)
    assert detectable_difference(round(needed), 4, **variances) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("omega2", -1.0),
        ("omega2", "0.1"),
        ("sigma2", math.nan),
        ("sigma2", None),
        ("power", 1.0),
        ("power", "0.8"),
        ("significance", 0.0),
        ("significance", [0.05]),
    ],
)
def test_power_refuses_settings_outside_their_range(setting: str, value: Any) -> None:
    settings_ = {"omega2": 0.1, "sigma2": 0.1, setting: value}
    with pytest.raises(ConfigurationError, match=setting):
        detectable_difference(30, 4, **settings_)
    for difference in (0.0, math.inf, "0.1", None):
        with pytest.raises(ConfigurationError, match="difference"):
            questions_needed(difference, 4, omega2=0.1, sigma2=0.1)
