"""Unique prompts, one gold each, a split that does not move."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.sources.cleaning import Gold, clean, split
from tasks.sources.ledger import Ledger
from tasks.sources.problem import Problem
from tasks.sources.words import comparison_key
from vcppo.config.sources import SyntheticSource
from vcppo.errors import DataError


def source(**values: Any) -> SyntheticSource:
    return SyntheticSource.model_validate({"name": "s", "num_problems": 1, **values})


def problem(text: str, answer: str, id_: str | None = None, row: int = 1) -> Problem:
    return Problem(id=f"s/{id_ or text}", text=text, answer=answer, where=f"f.jsonl: row {row}")


def cleaned(*problems: Problem) -> tuple[list[tuple[str, str]], Ledger]:
    ledger = Ledger()
    golds = clean(source(), problems, ledger)
    assert ledger.kept() == len(golds)
    return [(gold.problem.text, gold.gold) for gold in golds], ledger


def test_a_repeated_prompt_is_kept_once_and_counted() -> None:
    golds, ledger = cleaned(problem("p", "7"), problem("q", "8"), problem("p", "7"), problem("p", "7"))
    assert golds == [("p", "7"), ("q", "8")]
    assert dict(ledger.removed) == {"duplicate_prompt": 2}


def test_spellings_of_one_gold_are_one_gold() -> None:
    golds, ledger = cleaned(problem("p", "042"), problem("p", "42"))
    assert golds == [("p", "42")]
    assert dict(ledger.removed) == {"duplicate_prompt": 1}


def test_golds_of_a_math_source_are_one_when_their_values_are() -> None:
    ledger = Ledger()
    rows = [problem("p", "0.5"), problem("p", "\\frac12"), problem("q", "0.5"), problem("q", "\\frac13")]
    golds = clean(source(grader="math"), rows, ledger)
    assert [(gold.problem.text, gold.gold) for gold in golds] == [("p", "0.5")]
    assert dict(ledger.removed) == {"duplicate_prompt": 1, "conflicting_gold": 2}


def test_the_gold_of_a_multiple_choice_problem_is_an_option_not_the_letter_that_it_had() -> None:
    def asked(text: str, row: int, options: tuple[str, ...], answer: str) -> Problem:
        return Problem(f"s/{row}", text, answer, f"row {row}", options=options)

    ledger = Ledger()
    rows = [
        asked("p", 1, ("w", "x", "y", "z"), "A"),
        asked("p", 2, ("x", "w", "y", "z"), "B"),
        asked("q", 3, ("w", "x", "y", "z"), "A"),
        asked("q", 4, ("x", "w", "y", "z"), "A"),
    ]
    golds = clean(source(grader="gpqa"), rows, ledger)
    assert [(gold.problem.id, gold.gold) for gold in golds] == [("s/1", "A")]
    (entry,) = ledger.listed
    assert (entry["golds"], entry["where"]) == (["w", "x"], ["row 3", "row 4"])


def test_a_prompt_with_two_golds_is_dropped_wholly_and_listed_with_the_row_of_each() -> None:
    golds, ledger = cleaned(problem("p", "10", row=3), problem("q", "5"), problem("p", "9", row=12))
    assert golds == [("q", "5")]
    assert dict(ledger.removed) == {"conflicting_gold": 2}
    assert ledger.listed == [
        {
            "reason": "conflicting_gold",
            "id": "s/p",
            "golds": ["10", "9"],
            "where": ["f.jsonl: row 3", "f.jsonl: row 12"],
        }
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [("x + y", "x - y"), ("x²", "x2"), ("n!", "n"), ("A", "a"), ("a=b", "a≠b"), ("12", "1 2")],
)
def test_prompts_that_differ_in_a_letter_sign_or_operator_are_different(one: str, other: str) -> None:
    assert comparison_key(one) != comparison_key(other)


@pytest.mark.parametrize(("one", "other"), [(" a\n\nb ", "a b"), ("caf\u00e9", "cafe\u0301")])
def test_prompts_that_differ_in_white_space_or_composition_are_the_same(one: str, other: str) -> None:
    assert comparison_key(one) == comparison_key(other)


def test_a_gold_that_the_grader_cannot_read_is_named_by_row() -> None:
    with pytest.raises(DataError, match=r"^f\.jsonl: row 12: .*many"):
        cleaned(problem("p", "1"), problem("q", "many", row=12))


def test_one_id_for_two_problems_is_named_with_both_rows() -> None:
    with pytest.raises(
        DataError, match=r"row 2: id 's/a' already belongs to another problem \(f\.jsonl: row 1\)"
    ):
        cleaned(problem("p", "1", "a", row=1), problem("q", "1", "a", row=2))


def golds(count: int) -> list[Gold]:
    return [Gold(problem(f"p{i}", "1"), "1") for i in range(count)]


def ids(part: list[Gold]) -> list[str]:
    return [gold.problem.id for gold in part]


def test_split_holds_out_exactly_eval_count_and_loses_nothing() -> None:
    train, evaluation = split(source(use="split", eval_count=30), golds(100), Ledger())
    assert len(evaluation) == 30
    assert sorted(ids(train) + ids(evaluation)) == sorted(ids(golds(100)))


def test_the_split_depends_on_ids_alone_not_on_the_order_of_rows() -> None:
    forwards = split(source(use="split", eval_count=30), golds(100), Ledger())
    backwards = split(source(use="split", eval_count=30), golds(100)[::-1], Ledger())
    assert forwards == backwards


def test_max_count_takes_the_first_by_id_hash_and_counts_the_rest() -> None:
    ledger = Ledger()
    everything, _ = split(source(use="train"), golds(100), Ledger())
    some, _ = split(source(use="train", max_count=10), golds(100), ledger)
    assert some == everything[:10]
    assert dict(ledger.removed) == {"over_max_count": 90}


def test_a_source_for_evaluation_gives_nothing_to_train_on() -> None:
    train, evaluation = split(source(use="eval"), golds(5), Ledger())
    assert (len(train), len(evaluation)) == (0, 5)


def test_holding_out_everything_is_an_error_with_the_numbers() -> None:
    with pytest.raises(DataError, match=r"eval_count is 5, but only 5 problems are left"):
        split(source(use="split", eval_count=5), golds(5), Ledger())
