"""vcppo.statistics against values that were computed by other means (enumeration, closed forms, scipy)."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vcppo.errors import ConfigurationError, DataError
from vcppo.statistics import (
    average_at_k,
    clustered_standard_error,
    expected_standard_error,
    majority_at_k,
    paired_difference,
    pass_at_k,
)

FOUR_BY_FOUR = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]]
MEANS_A = [0.75, 0.5, 0.0, 1.0, 0.25]
MEANS_B = [1.0, 0.5, 0.25, 1.0, 0.5]


# --- pass@k


def test_pass_at_k_is_eleven_twelfths_where_the_plug_in_estimate_is_biased_low() -> None:
    assert pass_at_k(10, 3, 5) == 11 / 12


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets), abs=1e-15)


def test_pass_at_1_is_the_mean_for_every_number_of_samples() -> None:
    for n in (8, 16, 32, 64):
        assert pass_at_k([n, n], [n // 2, n // 4], 1) == 0.375


def test_pass_at_k_uses_the_samples_that_each_question_really_has() -> None:
    assert pass_at_k([2, 4], [1, 1], 1) == (1 / 2 + 1 / 4) / 2


def test_pass_at_k_stays_exact_for_many_samples() -> None:
    assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 5), (4, 1, 0), (4, 1, 1.5), (4, 1, True)])
def test_pass_at_k_refuses_a_k_that_no_subset_has(n: int, c: int, k: int) -> None:
    with pytest.raises(ConfigurationError, match="k is"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("n", "c"), [(4, 5), (4, -1), ([4, 4], [1]), ([], [])])
def test_pass_at_k_refuses_counts_that_do_not_fit(n: int, c: int) -> None:
    with pytest.raises(DataError, match="num_correct"):
        pass_at_k(n, c, 1)


@pytest.mark.parametrize(
    ("n", "c", "message"),
    [
        (4, 2.0, r"num_correct of 4 samples is 2\.0; allowed is an integer >= 0"),
        (4, math.nan, "num_correct of 4 samples is nan"),
        (4, True, "num_correct of 4 samples is True"),
        (4, None, "num_correct of 4 samples is None"),
        (4.0, 2, r"num_samples is 4\.0; allowed is an integer >= 0"),
        (-1, 0, "num_samples is -1"),
        ("4", 2, "num_samples is '4'; allowed is a list"),
        ([4, 4], {4: 1, 2: 1}, r"num_correct is \{4: 1, 2: 1\}; allowed is a list"),
        ([4, 4.0], 2, r"num_samples is 4\.0"),
    ],
)
def test_pass_at_k_refuses_counts_that_are_no_integers(n: object, c: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pass_at_k(n, c, 1)


# --- avg@k and its standard error


def test_average_and_clustered_standard_error_of_four_questions() -> None:
    assert average_at_k(FOUR_BY_FOUR) == 0.5625
    assert clustered_standard_error(FOUR_BY_FOUR) == pytest.approx(0.184877493221863, rel=1e-12)
    assert clustered_standard_error(FOUR_BY_FOUR, ddof=1) == pytest.approx(0.21347814095749162, rel=1e-12)
    naive = 0.128086884574495
    assert clustered_standard_error(FOUR_BY_FOUR) > naive


def test_one_sample_a_question_gives_the_bernoulli_standard_error() -> None:
    scores = [[1]] * 18 + [[0]] * 12
    assert clustered_standard_error(scores) == pytest.approx(0.08944271909999159, rel=1e-12)
    assert clustered_standard_error(scores, ddof=1) == pytest.approx(0.09097176522946841, rel=1e-12)


def test_expected_standard_error_falls_with_more_samples_but_not_below_the_spread_of_the_questions() -> None:
    rates = [0.1, 0.5, 0.9]
    assert expected_standard_error(rates, 30, 1) == pytest.approx(0.09128709291752768, rel=1e-12)
    assert expected_standard_error(rates, 30, 16) == pytest.approx(0.06208193510729725, rel=1e-12)
    floor = math.sqrt(0.10666666666666667 / 30)
    assert expected_standard_error(rates, 30, 10**9) == pytest.approx(floor, rel=1e-6)


def test_arrays_are_scores_too() -> None:
    assert average_at_k(numpy.array(FOUR_BY_FOUR)) == 0.5625
    assert pass_at_k(numpy.array([10, 10]), numpy.array([3, 3]), 5) == 11 / 12


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "0 questions"),
        ([[]], r"\[0\] samples"),
        ([[1, 0], [1]], r"\[1, 2\] samples"),
        ([[1, math.nan]], r"scores\[0\]\[1\] is nan"),
        ([[1, None]], r"scores\[0\]\[1\] is None"),
        ([1, 0], r"scores\[0\] is 1"),
        (None, "scores is None; allowed is a list or an array"),
        (3, "scores is 3; allowed"),
        (numpy.float64(3), r"scores is .*3\.0.*; allowed"),
        ("10", "scores is '10'; allowed"),
        (b"10", "scores is b'10'; allowed"),
        ({0: [1]}, r"scores is \{0: \[1\]\}; allowed"),
        ({1, 0}, r"scores is \{0, 1\}; allowed"),
        ([{0: 1}], r"scores\[0\] is \{0: 1\}"),
        ([[1, "1"]], r"scores\[0\]\[1\] is '1'"),
        ([[1, 1j]], r"scores\[0\]\[1\] is 1j"),
        ([[1, {}]], r"scores\[0\]\[1\] is \{\}"),
        ([[1, 10**400]], r"scores\[0\]\[1\] is 10000"),
    ],
)
def test_scores_that_are_missing_or_ungraded_are_refused_not_counted_as_wrong(
    scores: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        average_at_k(scores)
    with pytest.raises(DataError, match=message):
        clustered_standard_error(scores)


# --- maj@k


def test_majority_shares_ties_over_all_subsets() -> None:
    assert majority_at_k(["A", "A", "B", "B", "C"], "A", 3) == pytest.approx(13 / 30, abs=1e-15)


def test_no_answer_never_votes() -> None:
    assert majority_at_k([None, None, "A", "B", "A"], "A", 5) == 1.0
    assert majority_at_k([None, None, None], "A", 3) == 0.0
    assert majority_at_k([None, None, "A"], "A", 1) == pytest.approx(1 / 3, abs=1e-15)


def _majority_by_enumeration(answers: tuple, gold: str, k: int) -> Fraction:
    total, subsets = Fraction(0), list(itertools.combinations(answers, k))
    for subset in subsets:
        votes = [a for a in subset if a is not None]
        best = max((votes.count(a) for a in votes), default=0)
        winners = {a for a in votes if votes.count(a) == best}
        total += Fraction(gold in winners, max(1, len(winners)))
    return total / len(subsets)


@settings(max_examples=200)
@given(st.lists(st.sampled_from([None, "A", "B", "C", "D"]), min_size=1, max_size=9), st.data())
def test_majority_equals_the_enumeration_of_all_subsets(answers: list, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(answers)))
    expected = _majority_by_enumeration(tuple(answers), "A", k)
    assert majority_at_k(answers, "A", k) == pytest.approx(float(expected), abs=1e-15)


def test_majority_is_exact_where_no_one_could_enumerate() -> None:
    # By symmetry of two answers with equally many votes.
    assert majority_at_k(["A", "B"] * 64, "A", 64) == 0.5


def test_majority_refuses_too_large_a_k_and_no_gold() -> None:
    with pytest.raises(ConfigurationError, match="k is 3 but there are 2 answers"):
        majority_at_k(["A", "B"], "A", 3)
    with pytest.raises(DataError, match="gold is None"):
        majority_at_k(["A"], None, 1)


def test_majority_refuses_answers_that_are_none() -> None:
    for answers, message in [
        (None, "answers is None"),
        ("AAB", "answers is 'AAB'"),
        (["A", ["B"]], r"answers\[1\] is \['B'\]"),
    ]:
        with pytest.raises(DataError, match=message):
            majority_at_k(answers, "A", 1)
    with pytest.raises(DataError, match=r"gold is \['A'\]"):
        majority_at_k(["A"], ["A"], 1)
    assert majority_at_k([("A", 1), ("B", 2)], ("A", 1), 2) == 0.5


# --- comparison


def test_paired_difference_of_five_question_means() -> None:
    result = paired_difference(MEANS_A, MEANS_B)
    assert result.difference == pytest.approx(0.15, abs=1e-12)
    assert result.standard_error == pytest.approx(0.06123724356957946, rel=1e-12)
    assert result.standard_error_unpaired == pytest.approx(0.23184046238739262, rel=1e-12)
    assert result.correlation == pytest.approx(0.9428090415820632, rel=1e-12)
    # Three equal gains, two questions unmoved: of the 8 sign patterns, +++ and --- reach the observed sum.
    assert result.p_value == 0.25
    assert 0.0 <= result.low < result.difference < result.high <= 0.25
    assert result.num_questions == 5


def test_scores_by_sample_compare_as_their_question_means() -> None:
    a = [[1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]]
    b = [[1, 1], [1, 0], [0, 0.5], [1, 1], [1, 0]]
    assert paired_difference(a, b) == paired_difference(MEANS_A, MEANS_B)


def test_sign_flip_test_equals_scipys_exact_permutation_test() -> None:
    difference = numpy.random.default_rng(7).normal(0.4, 1.0, size=10)
    ours = paired_difference(numpy.zeros(10), difference).p_value
    theirs = stats.permutation_test(
        (difference,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=numpy.inf
    ).pvalue
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_drawn_sign_flips_come_near_the_normal_p_value_and_are_never_zero() -> None:
    difference = numpy.random.default_rng(3).normal(0.1, 1.0, size=400)
    ours = paired_difference(numpy.zeros(400), difference, num_resamples=20_000).p_value
    assert ours == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, abs=0.015)
    sure = paired_difference(numpy.zeros(400), numpy.ones(400))
    assert sure.p_value == pytest.approx(1 / 10_001)


def test_bootstrap_interval_comes_near_the_normal_one() -> None:
    difference = numpy.random.default_rng(5).normal(0.2, 1.0, size=500)
    result = paired_difference(numpy.zeros(500), difference)
    assert result.low == pytest.approx(result.difference - 1.96 * result.standard_error, abs=0.01)
    assert result.high == pytest.approx(result.difference + 1.96 * result.standard_error, abs=0.01)


def test_paired_difference_is_a_function_of_its_seed() -> None:
    difference = numpy.random.default_rng(11).normal(0.2, 1.0, size=30)
    zeros = numpy.zeros(30)
    assert asdict(paired_difference(zeros, difference, seed=4)) == asdict(
        paired_difference(zeros, difference, seed=4)
    )
    assert (
        paired_difference(zeros, difference, seed=4).low != paired_difference(zeros, difference, seed=5).low
    )


def test_equal_checkpoints_differ_by_nothing() -> None:
    result = paired_difference([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert (result.difference, result.low, result.high, result.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert result.correlation is None


def test_swapping_the_checkpoints_turns_the_sign() -> None:
    forth, back = paired_difference(MEANS_A, MEANS_B), paired_difference(MEANS_B, MEANS_A)
    assert back.difference == -forth.difference
    assert back.p_value == forth.p_value
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [
        ([1, 0], [1, 0, 1], "a has 2 questions, b has 3"),
        ([1], [0], "at least 2"),
        ([1, None], [1, 0], r"a\[1\] is None"),
        (None, [1, 0], "a is None"),
        ([1, 0], {"q": 1, "r": 0}, "b is {'q': 1, 'r': 0}"),
        ([[1, 0], [1]], [1, 0], "a has 2 questions"),
    ],
)
def test_questions_that_do_not_pair_are_refused(a: Any, b: Any, error: str) -> None:
    with pytest.raises(DataError, match=error):
        paired_difference(a, b)


@pytest.mark.parametrize(
    "setting",
    [
        {"confidence": 1.0},
        {"confidence": "0.95"},
        {"confidence": None},
        {"num_resamples": 3},
        {"num_resamples": 1e4},
        {"seed": -1},
        {"seed": "0"},
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: dict) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(setting))):
        paired_difference(MEANS_A, MEANS_B, **setting)
