"""Words of problems: the quick ways give what the general ones give."""

from __future__ import annotations

import string
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tasks.sources.words import _ASCII_WORD, _WORD, comparison_key, words

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
