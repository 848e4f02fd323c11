"""Intervals of a few numbers against tables and scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vcppo.errors import ConfigurationError, DataError
from vcppo.statistics import mean_interval, t_quantile


def test_quantiles_of_the_printed_table() -> None:
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042}
    assert {freedom: round(t_quantile(freedom), 3) for freedom in table} == table
    assert t_quantile(1, confidence=0.5) == pytest.approx(1.0, rel=1e-12)


@given(st.integers(1, 300), st.floats(0.01, 0.999))
def test_quantiles_equal_scipys(freedom: int, confidence: float) -> None:
    theirs = stats.t.ppf(0.5 + confidence / 2, freedom)
    assert t_quantile(freedom, confidence=confidence) == pytest.approx(theirs, rel=1e-9)


def test_interval_of_three_seeds_by_hand() -> None:
    # mean 0.94, deviation 0.01: half is 4.302653 * 0.01 / sqrt(3)
    interval = mean_interval([0.93, 0.95, 0.94])
    assert interval.mean == pytest.approx(0.94)
    assert interval.high - 0.94 == pytest.approx(4.302653 * 0.01 / math.sqrt(3), rel=1e-6)  # type: ignore[operator]
    assert 0.94 - interval.low == pytest.approx(interval.high - 0.94)  # type: ignore[operator]
    assert interval.n == 3


def test_interval_equals_scipys() -> None:
    values = [0.1, -0.4, 2.5, 0.0, 1.1]
    low, high = stats.t.interval(0.9, 4, loc=sum(values) / 5, scale=stats.sem(values))
    ours = mean_interval(values, confidence=0.9)
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-12)


def test_a_single_number_has_no_interval_and_equal_ones_have_one_of_width_0() -> None:
    one = mean_interval([0.5])
    assert (one.mean, one.low, one.high, one.n) == (0.5, None, None, 1)
    same = mean_interval([0.25, 0.25])
    assert (same.low, same.high) == (0.25, 0.25)


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [0.5, None]])
def test_numbers_that_are_none_are_refused(values: list) -> None:
    with pytest.raises(DataError, match="values"):
        mean_interval(values)


@pytest.mark.parametrize(
    ("freedom", "confidence", "name"), [(0, 0.95, "degrees"), (2.5, 0.95, "degrees"), (2, 1.0, "confidence")]
)
def test_settings_that_make_no_sense_are_refused(freedom: int, confidence: float, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        t_quantile(freedom, confidence=confidence)
