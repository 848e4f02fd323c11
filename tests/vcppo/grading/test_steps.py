"""Independent steps: what counts as a step, how many may be wrong, how a response ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcppo.errors import DataError
from vcppo.grading import Grade, canonical_gold, grade
from vcppo.grading.steps import LABELS, read_gold, response_with, write_gold, write_step


@pytest.mark.parametrize(
    ("response", "found"),
    [
        ("a377b121", Grade("right", "2 steps, 1 wrong")),
        ("a37?b122", Grade("right", "2 steps, 1 wrong")),
        ("a371b121", Grade("wrong", "2 steps, 2 wrong", "2 steps are wrong, allowed are 1")),
        ("a377", Grade("wrong", "1 steps, 0 wrong", "1 steps instead of 2")),
        ("a377c122", Grade("right", "2 steps, 1 wrong")),
        ("a377b12", Grade("wrong", "2 steps, 1 wrong", "ends inside a step")),
        ("a377b121c066", Grade("wrong", "3 steps, 1 wrong", "3 steps instead of 2")),
        ("A377c122", Grade("wrong", "2 steps, 2 wrong", "2 steps are wrong, allowed are 1")),
        ("377b122", Grade("no_answer", None, "holds no step")),
        ("", Grade("no_answer", None, "holds no step")),
    ],
)
def test_grade_says_what_it_read(response: str, found: Grade) -> None:
    assert grade(response, "2 steps, at most 1 wrong", "steps") == found


@pytest.mark.parametrize("reason", ["length", "abort"])
@pytest.mark.parametrize("response", ["a377b122", "a377b1", ""])
def test_a_cut_response_is_truncated_even_behind_its_last_step(response: str, reason: str) -> None:
    assert grade(response, "2 steps, at most 1 wrong", "steps", reason).status == "truncated"


def test_letters_start_again_behind_the_last() -> None:
    assert [write_step(place, 1, 2, 3) for place in (0, 25, 26, 51, 52)] == [
        "a123",
        "z123",
        "A123",
        "Z123",
        "a123",
    ]
    assert (
        grade(response_with(2 * len(LABELS) + 1, 0), "105 steps, at most 0 wrong", "steps").status == "right"
    )


@given(st.integers(1, 120), st.data())
def test_a_response_is_right_up_to_the_number_of_wrong_steps_that_is_allowed(
    num_steps: int, data: st.DataObject
) -> None:
    allowed = data.draw(st.integers(0, num_steps - 1))
    num_wrong = data.draw(st.integers(0, num_steps))
    gold = write_gold(num_steps, allowed)
    found = grade(response_with(num_steps, num_wrong), gold, "steps")
    assert found.status == ("right" if num_wrong <= allowed else "wrong")
    assert found.answer == f"{num_steps} steps, {num_wrong} wrong"


@given(st.text(max_size=60))
def test_no_text_makes_the_grader_fail(text: str) -> None:
    assert grade(text, "2 steps, at most 1 wrong", "steps").status in ("right", "wrong", "no_answer")


def test_a_gold_has_one_spelling() -> None:
    gold = "40 steps, at most 7 wrong"
    assert read_gold(gold) == (40, 7)
    assert canonical_gold(gold, "steps") == gold == write_gold(40, 7)


@pytest.mark.parametrize(
    "gold",
    ["", "40", "40 steps", "40 steps, at most 7", "40 steps, at most -1 wrong", "040 steps, at most 7 wrong",
     "40 steps, at most 7 wrong.", " 40 steps, at most 7 wrong", "0 steps, at most 0 wrong",
     "４０ steps, at most 7 wrong"],
)  # fmt: skip
def test_a_gold_of_another_form_is_an_error_that_shows_the_form(gold: str) -> None:
    with pytest.raises(DataError, match="is not of the form '40 steps, at most 7 wrong'"):
        canonical_gold(gold, "steps")
    assert grade("a377", gold, "steps").status == "grader_error"


def test_a_gold_with_which_nothing_could_be_wrong_is_an_error() -> None:
    with pytest.raises(DataError, match="allows 7 wrong steps of 7"):
        canonical_gold("7 steps, at most 7 wrong", "steps")
