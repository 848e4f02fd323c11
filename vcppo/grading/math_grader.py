"""MATH: the final answer of a response, decided on its text or by Math-Verify in the pool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from vcppo.errors import DataError
from vcppo.grading import math_cost, math_refusals, math_text
from vcppo.grading.boxes import find_boxes
from vcppo.grading.extract import Extracted, extract, final_part
from vcppo.grading.pool import GradingPool, Verdict
from vcppo.grading.result import ALTERED, CUT_REASONS, Grade, shown

_ANSWER_LIKE = re.compile(
    r"[$\\(\[{*_\s]*(?:[-+−–.]?\s*\d|\\[A-Za-z(\[]|[(\[{]|[A-Za-z]\w{0,3}\s*(?:[-+*/=<>^(]|$)|[A-Z][a-z]+\s*$"
    r"|(?:either|both)\b)",
    re.IGNORECASE,
)


_HEDGED = "several different answers offered"
_MAX_RIVALS = 3
_GOLD_PATIENCE = 20.0
"""Golds come from datasets: whether one can be read must not depend on the machine's load."""
_WRONG = math_text.Decision("wrong")


class Question(NamedTuple):
    """What is left for the algebra: expressions that must all equal the gold.

    The first expression is the answer; the others are rivals offered beside it; `written` is the
    answer as the response wrote it.
    """

    expressions: tuple[str, ...]
    gold: str
    written: str


def clean_gold(gold: str) -> str:
    """A gold without box, delimiters and final period. Raises DataError when nothing is left."""
    boxes = find_boxes(gold)
    text = math_text.normalize(boxes[-1].text if boxes else gold)
    if not text:
        raise DataError(f"MATH gold {shown(repr(gold))} is empty; correct or drop the row")
    return text


def canonical_gold(gold: str, pool: GradingPool) -> str:
    """The cleaned gold. Raises DataError when it is empty, too long or Math-Verify reads nothing in it."""
    text = clean_gold(gold)
    if math_text.as_words(text) is not None or math_refusals.is_clock(text):
        return text
    if len(text) > math_refusals.MAX_LENGTH or math_cost.costly(text):
        raise DataError(f"MATH gold {shown(repr(gold))} is too long or too costly to evaluate; drop the row")
    (verdict,) = pool.ask_all([(None, text)], patience=_GOLD_PATIENCE)
    if not verdict.same:
        reason = verdict.error or "Math-Verify reads no expression in it"
        raise DataError(
            f"MATH gold {shown(repr(gold))} cannot be graded against: {reason}; correct or drop the row"
        )
    return text


def settle(response: str, gold: str, finish_reason: str) -> Grade | Question:
    """The grade where the text decides it, else the question for the pool. DataError for an empty gold."""
    wanted = clean_gold(gold)
    text = final_part(response)
    found = None if text is None else extract(text, lambda value: _ANSWER_LIKE.match(value) is not None)
    if found is None or (found.open_ended and finish_reason in CUT_REASONS):
        if finish_reason in CUT_REASONS:
            return Grade("truncated", None, f"cut ({finish_reason}) before a complete answer")
        return Grade(
            "no_answer", None, "unclosed <think>" if text is None else "no box and no answer statement"
        )
    written = shown(found.text)
    if len(found.text) > math_refusals.MAX_LENGTH:
        return Grade("wrong", written, f"longer than {math_refusals.MAX_LENGTH} characters")
    answer = math_text.normalize(found.text)
    decision = math_text.decide(answer, wanted)
    if decision is not None and decision.status == "no_answer":
        return Grade("no_answer", None, "empty box" if found.boxed else "empty answer statement")
    if decision is not None and decision.status == "wrong":
        return Grade("wrong", written, decision.detail)
    if found.altered:
        return Grade("wrong", written, ALTERED)
    expressions = [] if decision else [answer]
    for rival in _rivals(found, answer):
        too_long = len(rival) > math_refusals.MAX_LENGTH or len(expressions) > _MAX_RIVALS
        judged = _WRONG if too_long else math_text.decide(math_text.normalize(rival), wanted)
        if judged is not None and judged.status != "right":
            return Grade("wrong", written, _HEDGED)
        if judged is None:
            expressions.append(math_text.normalize(rival))
    return Question(tuple(expressions), wanted, written) if expressions else Grade("right", written)


def _rivals(found: Extracted, answer: str) -> list[str]:
    """Answers offered beside the last one that are not plainly the same value."""
    doubts = found.doubts if math_text.as_number(answer) is not None else ()  # "\frac{\pi}{2} or 90 degrees"
    return [
        other
        for other in dict.fromkeys(found.others + doubts)
        if len(other) > math_refusals.MAX_LENGTH or not math_text.same_value(other, found.text)
    ]


def to_grade(question: Question, verdicts: Sequence[Verdict]) -> Grade:
    """The grade that the pool's verdicts on a question's expressions mean."""
    refuted = [verdict for verdict in verdicts if not verdict.error and not verdict.same]
    failed = [verdict for verdict in verdicts if verdict.error]
    if failed and not refuted:  # one expression that differs from the gold decides, whatever the others are
        unreadable = [verdict for verdict in failed if verdict.kind == "gold"]
        if unreadable:  # no fault of the answer
            return Grade("grader_error", None, unreadable[0].error)
        return Grade("grader_error", question.written, failed[0].error)
    if all(verdict.same for verdict in verdicts):
        return Grade("right", question.written)
    return Grade("wrong", question.written, _HEDGED if verdicts[0].same else "")
