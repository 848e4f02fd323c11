"""Properties of the graders over generated spellings and texts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vcppo.grading import canonical_gold, grade
from vcppo.grading.boxes import find_boxes
from vcppo.grading.math_text import as_number, normalize
from vcppo.grading.spelling import read_integer

FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
SPELLINGS: dict[str, Callable[[int], str]] = {
    "plain": str,
    "zero padded": lambda n: f"{n:03d}",
    "decimal point": lambda n: f"{n}.0",
    "full-width": lambda n: str(n).translate(FULL_WIDTH),
    "bold": lambda n: rf"\mathbf{{{n}}}",
    "braces": lambda n: f"{{{n}}}",
    "spaces": lambda n: f" {n} ",
    "degrees": lambda n: rf"{n}^\circ",
    "unit": lambda n: rf"{n}\text{{ cm}}^2",
    "assignment": lambda n: f"m+n = {n}",
    "exponent": lambda n: f"{n}e0",
    "scientific": lambda n: rf"{n // 10}.{n % 10} \times 10^{{1}}",
    "plus": lambda n: f"+{n}",
}
FRAMES = [
    r"Thus \boxed{%s}.",
    r"\fbox{%s}",
    "Answer: %s",
    "**Final answer:** $%s$",
    "# Answer\n\n%s",
    "<answer>%s</answer>",
    r"So the answer is \(%s\).",
]
integers = st.integers(0, 999)


@given(integers, integers, st.sampled_from(sorted(SPELLINGS)), st.sampled_from(FRAMES))
def test_every_spelling_is_right_for_its_integer_and_wrong_for_others(
    value: int, other: int, spelling: str, frame: str
) -> None:
    response = frame % SPELLINGS[spelling](value)
    assert grade(response, str(value), "aime").status == "right"
    assert grade(response, f"{value:03d}", "aime").status == "right"
    assume(other != value)
    assert grade(response, str(other), "aime").status == "wrong"


@given(st.integers(1000, 10**9), st.sampled_from([",", "{,}", r"\,", r"\ ", "~"]))
def test_thousands_separators(value: int, separator: str) -> None:
    assert read_integer(f"{value:,}".replace(",", separator)) == value


@given(integers)
def test_canonical_gold_is_a_fixed_point(value: int) -> None:
    assert canonical_gold(f"{value:04d}", "aime") == str(value) == canonical_gold(str(value), "aime")


@given(
    integers, st.sampled_from(["+0", "!", r"\cdot 1", "/1", "^1", r"\pm 0", "%", "?", "x", r"\pi", " or so"])
)
def test_an_expression_is_no_integer_literal(value: int, tail: str) -> None:
    assert grade(rf"\boxed{{{value}{tail}}}", str(value), "aime").status == "wrong"


@given(st.text(max_size=200), integers)
def test_text_before_the_last_think_end_never_counts(thoughts: str, value: int) -> None:
    before = rf"<think>{thoughts} \boxed{{{value}}} Answer: {value}</think>"
    assert grade(before + " I cannot tell.", str(value), "aime").status == "no_answer"
    other = (value + 1) % 1000
    assert grade(before + rf" \boxed{{{other}}}", str(value), "aime").status == "wrong"


@given(st.text(alphabet="abc \n<>/\\{}$.,", max_size=100), integers)
def test_an_unclosed_think_is_no_answer(text: str, value: int) -> None:
    response = rf"<think>{text} \boxed{{{value}}}"
    assert grade(response, str(value), "aime").status == "no_answer"
    assert grade(response, str(value), "aime", "length").status == "truncated"


@given(
    st.lists(integers, min_size=2, max_size=30, unique=True),
    st.sampled_from([" ", "\n", ", ", " or ", r" \quad "]),
)
def test_enumerated_boxes_are_wrong_for_every_member(values: list[int], separator: str) -> None:
    response = separator.join(rf"\boxed{{{value}}}" for value in values)
    assert {grade(response, str(value), "aime").status for value in values} == {"wrong"}


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"), st.booleans())
def test_two_letters_are_wrong_unless_they_are_one(first: str, second: str, boxed: bool) -> None:
    text = rf"\boxed{{{first}}} or \boxed{{{second}}}" if boxed else f"Answer: {first} or {second}"
    assert grade(text, second, "gpqa").status == ("right" if first == second else "wrong")


@given(st.text(max_size=300), st.sampled_from(["aime", "gpqa"]))
def test_no_text_makes_a_grader_fail(text: str, benchmark: str) -> None:
    found = grade(text, "C" if benchmark == "gpqa" else "7", benchmark)
    assert found.status in ("right", "wrong", "no_answer")


@given(st.text(alphabet="\\boxedf{} 12ab$[]", max_size=120))
def test_boxes_are_found_in_order_and_do_not_overlap(text: str) -> None:
    boxes = find_boxes(text)
    assert all(one.end <= other.start for one, other in zip(boxes, boxes[1:], strict=False))
    assert all(0 <= box.start < box.end <= len(text) for box in boxes)


@given(st.integers(-99, 99), st.integers(1, 99), st.integers(1, 9))
def test_a_fraction_has_its_value_however_unreduced(numerator: int, denominator: int, factor: int) -> None:
    sign = "-" if numerator < 0 else ""
    spelled = rf"{sign}\dfrac{{{abs(numerator) * factor}}}{{{denominator * factor}}}"
    assert as_number(normalize(spelled)) == Fraction(numerator, denominator)


@given(st.integers(0, 9999), st.integers(0, 99))
def test_percent_is_a_hundredth(whole: int, hundredths: int) -> None:
    assert normalize(rf"{whole}.{hundredths:02d}\%") == rf"\frac{{{whole}.{hundredths:02d}}}{{100}}"


@pytest.mark.parametrize("benchmark", ["aime", "gpqa", "math"])
def test_a_long_response_is_read_from_its_end(benchmark: str) -> None:
    gold = "C" if benchmark == "gpqa" else "7"
    other = "B" if benchmark == "gpqa" else "8"
    assert grade("x " * 300_000 + rf"\boxed{{{gold}}}", gold, benchmark).status == "right"
    assert (
        grade(rf"\boxed{{{gold}}}" + "x " * 300_000 + rf"\boxed{{{other}}}", gold, benchmark).status
        == "wrong"
    )
