"""Words of problems: the quick ways give what the general ones give."""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.sources.words import _ASCII_WORD, _WORD, comparison_key, layout_key, words

PIECES = st.sampled_from([*string.printable, "1,000", "3.14", "x2", "  ", "\\frac", "é", "e\u0301", "求"])
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS)
def test_ascii_text_has_the_words_that_the_general_pattern_finds(text: str) -> None:
    plain = text.encode("ascii", "ignore").decode().lower()
    assert _ASCII_WORD.findall(plain) == _WORD.findall(plain)


@given(TEXTS)
def test_two_prompts_are_the_same_by_composed_characters_and_single_spaces(text: str) -> None:
    assert comparison_key(text) == " ".join(unicodedata.normalize("NFC", text).split())


def test_layout_is_no_word_and_what_only_looks_like_it_is() -> None:
    assert words(r"$\left(\dfrac{1{,}000}{x}\right)$, \leftarrow [asy] draw(a); [/asy] 3.5%") == [
        "(", "frac", "1", "000", "x", ")", "leftarrow", "3.5", "%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Let $x$ be 2.", "Let x be 2"),
        ("\\(x^{10}\\)", "$x^10$"),
        ("\\left( \\dfrac{1}{2} \\right)", "(\\frac {1} {2})"),
        ("1,000 of them", "1000 of them"),
    ],
)
def test_layout_and_punctuation_alone_make_the_same_problem(one: str, other: str) -> None:
    assert layout_key(one) == layout_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f'(2)", "f(2)"),
        ("A + a", "a + A"),
        (".5 of it", "5 of it"),
        ("x - 1", "x + 1"),
        ("x^{12}", "x^1 2"),
        ("[asy] draw(1); [/asy] area?", "[asy] draw(2); [/asy] area?"),
        ("x²", "x2"),
        ("1 2", "12"),
        ("n!", "n"),
        ("1.5", "1 5"),
    ],
)
def test_what_could_change_an_answer_makes_another_problem(one: str, other: str) -> None:
    assert layout_key(one) != layout_key(other)
