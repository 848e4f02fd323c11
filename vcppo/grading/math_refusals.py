r"""MATH: differences that Math-Verify would overlook, and answers that it must not be given.

It drops what it does not know, so that `11_5` and `11_6` or `(1,2)` and `2,1` come out equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vcppo.grading.math_cost import costly, depth
from vcppo.grading.spelling import changes_number
from vcppo.grading.vocabulary import FACTORS, LATEX_COMMANDS, QUALIFIERS, UNIT_NAMES, UNITS

MAX_LENGTH = 1_000  # characters of one answer; the longest gold of MATH has fewer than 200
MAX_DEPTH = 25

_UNFINISHED = ("..", "…", "dots", "'", "prime")

_TEXT = re.compile(r"\\(?:text(?:rm|sf|tt|normal)?|mbox|operatorname|mathrm)\s*\{([^{}]*)\}")
_BASE = re.compile(r"[\dA-F)]\s*_\s*(?:\{\s*(\d+)\s*\}|(\d+))")
_CLOCK = re.compile(r"0?(\d{1,2}):(\d{2})")
_DEGREE = re.compile(r"\^\s*\{?\s*\\circ(?![A-Za-z])")
_COMMAND = re.compile(r"\\([A-Za-z]+)")


def refusal(answer: str, gold: str) -> str | None:
    """Why `answer` cannot equal `gold`, or must not be evaluated."""
    if len(answer) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH} characters"
    if depth(answer) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    if costly(answer) or costly(gold):
        return "too costly to evaluate, and not spelled like the gold"
    if any(mark in answer and mark not in gold for mark in _UNFINISHED):
        return "an ellipsis or a prime stands behind the value"
    if _bases(answer) != _bases(gold):
        return "other number base"
    if is_clock(gold) or _CLOCK.fullmatch(answer):
        return "other time"
    if {_list_kind(answer), _list_kind(gold)} == {"ordered", "plain"}:
        return "an ordered list in brackets is no plain list"
    if unknown := {name for name in _COMMAND.findall(answer) if name not in LATEX_COMMANDS} - set(
        _COMMAND.findall(gold)
    ):
        return f"LaTeX command not understood: {', '.join(sorted(unknown))}"
    words, gold_words = _text_words(answer), _text_words(gold)
    if doubts := (words & (QUALIFIERS | FACTORS)) - gold_words:
        return f"hedged or qualified: {', '.join(sorted(doubts))}"
    if any(changes_number(inside) and inside not in gold for inside in _TEXT.findall(answer)):
        return "a text behind the number changes it"
    units, gold_units = _units(words, answer), _units(gold_words, gold)
    return "other unit" if units and gold_units and units != gold_units else None


def is_clock(text: str) -> bool:
    """Whether `text` is a time of day, which is compared as text."""
    return _CLOCK.match(text) is not None


def time_of_day(text: str) -> tuple[str, ...] | None:
    """Hours, minutes and the letters behind (`pm`) of a time, None for anything else."""
    clock = _CLOCK.match(text)
    if clock is None:
        return None
    return (*clock.groups(), re.sub(r"[^a-z]", "", _TEXT.sub(r"\1", text[clock.end() :]).lower()))


def _bases(text: str) -> list[str]:
    without_functions = re.sub(r"\\log\s*_\s*(?:\{[^{}]*\}|.)", "", text)
    return [found[0] or found[1] for found in _BASE.findall(without_functions)]


def closing_bracket(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `start` (any kind closes any), or -1."""
    depth = 0
    for position, character in _brackets(text, start):
        depth += 1 if character in "([{" else -1
        if depth == 0:
            return position
    return -1


def _brackets(text: str, start: int) -> Iterator[tuple[int, str]]:
    return ((position, text[position]) for position in range(start, len(text)) if text[position] in "([{)]}")


def _list_kind(text: str) -> str:
    """`ordered` for one bracketed list `(a, b)` or `[a, b)`, `plain` for a bare list or a set, else empty."""
    text = re.sub(r"^[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))\s*", "", text.strip())
    if not _has_top_comma(text.replace("\\{", "").replace("\\}", "")):
        inner = text[1:-1] if text[:1] in "([" and closing_bracket(text, 0) == len(text) - 1 else ""
        return "ordered" if _has_top_comma(inner) else ""
    return "plain"


def _has_top_comma(text: str) -> bool:
    depth = 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and character in ",;" and not re.match(r",\d{3}(?!\d)", text[position:]):
            return True
    return False


def _text_words(text: str) -> set[str]:
    inside = " ".join(_TEXT.findall(text))  # a single letter outside \text is a variable, not a unit
    outside = re.findall(r"[a-z]{2,}", re.sub(r"\\[A-Za-z]+", " ", _TEXT.sub(" ", text)).lower())
    return set(re.findall(r"[a-z]+", inside.lower())) | set(outside)


def _units(words: set[str], text: str) -> set[str]:
    names = {UNITS.get(word, word.removesuffix("s")) for word in words}
    return (names & UNIT_NAMES) | ({"degree"} if _DEGREE.search(text) else set())
