"""AIME: an integer, compared as an integer. No algebra: an expression is wrong even if it is equal."""

from __future__ import annotations

import re

from vcppo.errors import DataError
from vcppo.grading.extract import Extracted, extract, final_part
from vcppo.grading.result import ALTERED, CUT_REASONS, Grade, shown
from vcppo.grading.spelling import read_integer

_NUMBER_LIKE = re.compile(
    r"[$\\(\[{*_\s]*(?:(?:text|math)[a-z]{0,6}\{)?(?:[-+−–]?\s*[\d０-９]|[^\n.]{1,80}=\s*[-+]?\d|(?:either|both)\b)",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(r",\s+(?!(?:or|and|maybe|perhaps|possibly|alternatively)\b)(?=[A-Za-z]{2,})")
_UNSURE = re.compile(r"\b(?:either|maybe|perhaps|possibly|probably|or)\b", re.IGNORECASE)


def canonical_gold(gold: str) -> str:
    """The integer 0-999 that `gold` spells, without leading zeros. Raises DataError for anything else."""
    value = read_integer(gold)
    if value is None or not 0 <= value <= 999:
        raise DataError(
            f"AIME gold {shown(repr(gold))} is not an integer from 0 to 999; correct or drop the row"
        )
    return str(value)


def grade(response: str, gold: str, finish_reason: str = "stop") -> Grade:
    """Grade against any integer gold (training sets graded this way also hold integers beyond 999).

    Raises DataError when the gold is no integer.
    """
    wanted = read_integer(gold)
    if wanted is None:
        raise DataError(f"gold {shown(repr(gold))} is not an integer; the aime grader compares integers only")
    text = final_part(response)
    found = None if text is None else extract(text, lambda value: _NUMBER_LIKE.match(value) is not None)
    if found is None or (found.open_ended and finish_reason in CUT_REASONS):
        if finish_reason in CUT_REASONS:
            return Grade("truncated", None, f"cut ({finish_reason}) before a complete answer")
        return Grade(
            "no_answer", None, "unclosed <think>" if text is None else "no box and no answer statement"
        )
    return _compare(found, wanted)


def _compare(found: Extracted, wanted: int) -> Grade:
    value = _read(found)
    if value is None:
        if not found.text.strip("{}$ \\,."):
            return Grade("no_answer", None, "empty box" if found.boxed else "empty answer statement")
        return Grade("wrong", shown(found.text), "not one integer literal")
    answer = str(value)
    if found.altered:
        return Grade("wrong", answer, ALTERED)
    rivals = found.others + found.doubts
    if rivals and any(read_integer(rival) != value for rival in rivals):
        return Grade("wrong", answer, "several different answers offered")
    return Grade("right", answer) if value == wanted else Grade("wrong", answer)


def _read(found: Extracted) -> int | None:
    value = read_integer(found.text)
    if value is None and not found.boxed and not _UNSURE.search(found.text):
        value = read_integer(_AFTERTHOUGHT.split(found.text, maxsplit=1)[0])
    return value
