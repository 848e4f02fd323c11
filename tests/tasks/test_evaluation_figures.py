"""From samples to figures, what is refused on the way, and the gate of promotion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.evaluate import measure
from tasks.evaluation import self_check as self_checking
from tasks.evaluation.benchmarks import Benchmark
from tasks.evaluation.figures import (
    benchmark_metrics,
    check_complete,
    interval,
    paired_metrics,
    parser_failure_rate,
)
from tasks.evaluation.policies import check_readable
from tasks.evaluation.promotion import promotion
from tasks.evaluation.self_check import self_check
from vcppo.config.base import SamplingConfig
from vcppo.config.evaluate import PromotionConfig
from vcppo.errors import DataError, GraderError
from vcppo.grading import Grade

Row = dict[str, Any]


def row(question: int, sample: int, status: str = "right", **more: Any) -> Row:
    answer = None if status in ("no_answer", "truncated") else "42"
    return {
        "id": f"q/{question}",
        "data_source": "q",
        "sample": sample,
        "status": status,
        "answer": answer,
        "response": "so 42",
        "finish_reason": "length" if status == "truncated" else "stop",
        "num_response_tokens": 10,
        **more,
    }


def grid(statuses: Sequence[Sequence[str]]) -> list[Row]:
    return [row(q, k, status) for q, own in enumerate(statuses) for k, status in enumerate(own)]


# --- figures ---------------------------------------------------------------------------------------------


def test_figures_of_a_small_table_are_those_of_a_calculation_by_hand() -> None:
    metrics = benchmark_metrics(
        grid([["right", "right", "wrong", "no_answer"], ["wrong", "truncated", "wrong", "wrong"]]), 4, (1, 2)
    )
    assert metrics["average_at_k"] == 2 / 8
    assert metrics["standard_error"] == pytest.approx((2 * 0.25**2) ** 0.5 / 2)
    assert metrics["pass_at_2"] == pytest.approx((1 - 1 / 6) / 2)
    # "42" of the wrong ones is an answer of its own: right wins 2 to 1 in the first question
    assert metrics["maj_at_4"] == 1 / 2
    assert (metrics["answer_rate"], metrics["truncation_rate"], metrics["parser_failure_rate"]) == (
        6 / 8, 1 / 8, 1 / 8,
    )  # fmt: skip
    assert metrics["mean_response_tokens"] == 10


def test_the_average_does_not_shrink_when_more_samples_are_drawn() -> None:
    averages = [
        benchmark_metrics(grid([["right", "wrong"] * (n // 2)] * 3), n, (1,))["average_at_k"]
        for n in (2, 8, 32)
    ]
    assert averages == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:-1], "1 missing (first: sample 1 of q/1)"),
        (lambda rows: [*rows, rows[0]], "1 double (first: sample 0 of q/0)"),
        (lambda rows: [*rows, row(7, 0)], "1 not asked for (first: sample 0 of q/7)"),
        (lambda rows: [*rows[:-1], row(1, 1, "pending")], "1 without a grade (first: sample 1 of q/1)"),
        (lambda rows: [], "4 missing"),
    ],
)
def test_samples_scored_are_questions_times_samples_or_nothing_is_scored(change: Any, message: str) -> None:
    rows = grid([["right", "wrong"]] * 2)
    check_complete("q", rows, ["q/0", "q/1"], 2)
    with pytest.raises(DataError, match=re.escape(message)):
        check_complete("q", change(rows), ["q/0", "q/1"], 2)


def test_an_answer_that_exhausts_the_grader_is_counted_and_no_wrong_answer() -> None:
    rows = grid([["right", "grader_error"], ["wrong", "right"], ["grader_error", "grader_error"]])
    check_complete("q", rows, ["q/0", "q/1", "q/2"], 2)
    metrics = benchmark_metrics(rows, 2, (1, 2))
    assert metrics["grader_errors"] == 3 and metrics["parser_failure_rate"] == 3 / 6
    # question means 1 and 1/2; the third question has none
    assert metrics["average_at_k"] == 3 / 4 and metrics["num_problems"] == 2
    assert metrics["pass_at_1"] == 3 / 4
    assert metrics["pass_at_2"] == 1.0  # of the one question with two graded samples
    assert metrics["maj_at_2"] == (1 + 1 / 2) / 2  # what is ungradable does not vote
    other = grid([["wrong", "wrong"], ["wrong", "wrong"], ["right", "right"]])
    paired = paired_metrics(other, rows, seed=0)
    assert (paired["difference"], paired["num_questions"]) == (3 / 4, 2)


def test_only_responses_that_ended_by_themselves_can_fail_the_parser() -> None:
    rows = grid([["right", "wrong", "no_answer", "truncated"]])
    assert parser_failure_rate(rows) == 1 / 4


def test_an_interval_of_all_wrong_or_all_right_is_not_a_point() -> None:
    low, high = interval(0.0, 0.0, 30)
    assert low == 0.0 and high == pytest.approx(0.1135, abs=1e-3)
    low, high = interval(1.0, 0.0, 30)
    assert high == 1.0 and low == pytest.approx(1 - 0.1135, abs=1e-3)
    assert interval(0.98, 0.05, 30)[1] == 1.0


def test_a_majority_counts_options_not_the_letters_they_happened_to_have() -> None:
    # option 2 is wrong and has three votes under three letters; the right one has two
    votes = [("A", [2, 0, 1, 3]), ("B", [0, 2, 1, 3]), ("C", [0, 1, 2, 3])]
    rows = [row(0, k, "wrong", answer=a, permutation=p) for k, (a, p) in enumerate(votes)]
    rows += [row(0, k, "right", answer=a, permutation=[0, 1, 2, 3]) for k, a in ((3, "A"), (4, "A"))]
    assert benchmark_metrics(rows, 5, (1,))["maj_at_5"] == 0.0


@pytest.mark.parametrize(
    ("status", "more"),
    [("no_answer", {}), ("truncated", {"finish_reason": "abort"}), ("grader_error", {})],
)
def test_what_is_no_answer_neither_votes_nor_counts_as_answered_whatever_text_it_carries(
    status: str, more: dict[str, str]
) -> None:
    rows = [row(0, 0), *(row(0, k, status, answer="carbon", **more) for k in (1, 2))]
    rows += [row(1, k) for k in range(3)]
    metrics = benchmark_metrics(rows, 3, (1,))
    assert metrics["maj_at_3"] == 1.0
    assert metrics["answer_rate"] == 4 / 6


def test_responses_that_the_engine_broke_off_have_a_rate_of_their_own() -> None:
    rows = grid([["right", "truncated"], ["truncated", "no_answer"]])
    rows[2]["finish_reason"] = "abort"
    metrics = benchmark_metrics(rows, 2, (1,))
    rates = ("truncation_rate", "abort_rate", "parser_failure_rate")
    assert [metrics[name] for name in rates] == [1 / 4, 1 / 4, 1 / 4]


# --- what fails an evaluation ----------------------------------------------------------------------------


def benchmark(limit: float | None, samples: int = 4) -> Benchmark:
    return Benchmark("q", (), samples, SamplingConfig(), 8, (1,), limit)


def test_too_many_unreadable_answers_fail_it_naming_benchmark_rate_and_policy() -> None:
    rows = {"q": grid([["right"] * 9 + ["no_answer"]])}
    check_readable("before", rows, [benchmark(0.1)], Path("kept"))
    check_readable("before", rows, [benchmark(None)], Path("kept"))
    with pytest.raises(DataError, match=r"policy before training: q: 10.00% of 10 responses.*kept in kept"):
        check_readable("before", rows, [benchmark(0.05)], Path("kept"))


def test_answers_that_exhaust_the_grader_fail_it_above_the_limit_only_and_never_without_notice() -> None:
    rows = {"q": grid([["right"] * 99 + ["grader_error"]])}
    check_readable("before", rows, [benchmark(0.02)], Path("kept"))
    check_readable("before", rows, [benchmark(None)], Path("kept"))
    for limit in (0.02, None):
        many = {"q": grid([["right"] * 97 + ["grader_error"] * 3])}
        with pytest.raises(GraderError, match=r"q: 3.00% of 100 answers exhaust the grader's time.*'42'"):
            check_readable("before", many, [benchmark(limit)], Path("kept"))
    # each alone is below the limit, together they are not
    both = {"q": grid([["right"] * 97 + ["grader_error"] * 2 + ["no_answer"]])}
    with pytest.raises(DataError, match="q: 3.00% of 100 responses ended without a readable answer"):
        check_readable("before", both, [benchmark(0.02)], Path("kept"))


def test_responses_that_the_engine_broke_off_fail_it_naming_the_finish_reasons() -> None:
    broken = grid([["right"] * 90 + ["truncated"] * 10])
    check_readable("after", {"q": broken}, [benchmark(0.02)], Path("kept"))
    for number in range(3):
        broken[90 + number]["finish_reason"] = "abort"
    # a limit that is off is about what the policy writes: this is not the policy's doing
    for limit in (0.02, None):
        with pytest.raises(DataError) as raised:
            check_readable("after", {"q": broken}, [benchmark(limit)], Path("kept"))
        assert "q: 3.00% of 100 responses were broken off by the engine" in str(raised.value)
        assert "finish reasons: stop 90, length 7, abort 3" in str(raised.value)
        assert "remove the stage's work directory" in str(raised.value)
    check_readable("after", {"q": broken}, [benchmark(0.03)], Path("kept"))
    # each alone is below the limit, together they are not
    broken[0] = row(0, 0, "no_answer")
    with pytest.raises(DataError, match=r"q: 4.00% of 100 responses.*readable answer.*, abort 3"):
        check_readable("after", {"q": broken}, [benchmark(0.03)], Path("kept"))


def test_a_model_that_returns_nothing_fails_it_even_without_a_limit() -> None:
    rows = {"q": [row(0, k, "no_answer", response=" \n") for k in range(4)]}
    with pytest.raises(DataError, match="q: all 4 responses are empty"):
        check_readable("after", rows, [benchmark(None)], Path("kept"))


def test_the_evaluator_knows_the_stored_responses_figures_to_the_digit() -> None:
    self_check(["aime", "gpqa", "math", "steps"])


@pytest.mark.parametrize("status", ["right", "wrong", "no_answer"])
def test_a_grader_that_always_says_the_same_does_not_pass_the_self_check(
    monkeypatch: pytest.MonkeyPatch, status: Any
) -> None:
    monkeypatch.setattr(self_checking, "grade_batch", lambda items, _: [Grade(status, "1") for _ in items])
    with pytest.raises(GraderError, match="self-check of the evaluator"):
        self_check(["aime"])


def test_a_wrong_figure_does_not_pass_the_self_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(self_checking.FIGURES["aime"], "average_at_k", 0.3333)
    with pytest.raises(GraderError, match="average_at_k of the stored aime responses is 0.3333333333333333"):
        self_check(["aime"])


# --- promotion -------------------------------------------------------------------------------------------


def outcome(average: float, low: float) -> dict[str, Any]:
    return {
        "after": {"q": {"average_at_k": average}},
        "difference": {"q": {"low": low, "high": 0.5}},
    }


@pytest.mark.parametrize(
    ("gate", "average", "low", "reasons"),
    [
        ({}, 0.5, 0.01, []),
        ({}, 0.5, 0.0, ["interval of the difference"]),
        ({"min_average": 0.6}, 0.5, -0.1, ["below the minimum 0.6", "interval of the difference"]),
        ({"require_improvement": False}, 0.5, -0.1, []),
        ({"min_average": 0.6, "benchmarks": []}, 0.5, -0.1, ["below the minimum", "interval"]),
    ],
)
def test_promotion_asks_for_a_minimum_and_an_interval_above_zero(
    gate: dict[str, Any], average: float, low: float, reasons: list[str]
) -> None:
    verdict = promotion(PromotionConfig.model_validate(gate), outcome(average, low))
    assert verdict["passed"] == (not reasons)
    assert len(verdict["reasons"]) == len(reasons)
    assert all(part in reason for part, reason in zip(reasons, verdict["reasons"], strict=True))


def test_both_policies_are_measured_on_the_same_questions() -> None:
    before = {"q": grid([["right", "wrong"], ["wrong", "wrong"], ["wrong", "right"]])}
    after = {"q": grid([["right", "right"], ["right", "wrong"], ["right", "right"]])}
    metrics = measure({"before": before, "after": after}, [benchmark(None, samples=2)], seed=1)
    assert metrics["difference"]["q"]["difference"] == pytest.approx(0.5)
    assert set(metrics) == {"before", "after", "difference", "settings"}
