"""Answers inside worked solutions."""

from __future__ import annotations

import pytest

from tasks.sources.boxes import gsm8k_answer, last_boxed, response_to_imitate


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"so $\boxed{5}$.", "5"),
        (r"\boxed{1} and \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed 7$", "7"),
        (r"\fbox{11}", "11"),
        (r"\boxed{ x^{2} }", "x^{2}"),
    ],
)
def test_the_last_box_is_read_with_its_braces(solution: str, answer: str) -> None:
    assert last_boxed(solution) == answer


@pytest.mark.parametrize("solution", ["no box", r"cut \boxed{\frac{1}{2}", r"empty \boxed"])
def test_no_box_or_a_cut_one_is_an_error(solution: str) -> None:
    with pytest.raises(ValueError, match="boxed"):
        last_boxed(solution)


def test_gsm8k_answers_lose_their_commas() -> None:
    assert gsm8k_answer("a\n#### 70,000") == "70000"


@pytest.mark.parametrize(
    ("solution", "response"),
    [
        ("16-3=<<16-3=13>>13 eggs.\n#### 13", "16-3=13 eggs.\n\\boxed{13}"),
        ("a3=3\\boxed{3}", "a3=3\\boxed{3}"),
        ("Just so.", "Just so.\n\\boxed{13}"),
    ],
)
def test_a_response_to_imitate_ends_in_one_box(solution: str, response: str) -> None:
    assert response_to_imitate(solution, "13") == response
