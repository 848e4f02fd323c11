r"""Where a response says its final answer: after the last `</think>`, the last complete box, else the last
explicit statement. What a benchmark's grader then makes of that text is its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from vcppo.grading.boxes import enumerated, find_boxes
from vcppo.grading.statements import last_run

MAX_RESPONSE = 400_000  # characters; of a longer response only the end is read, where the answer stands

_LEAD, _TAIL = 60, 120  # characters before and behind an answer in which an alternative to it is looked for

_THINK_END = re.compile(r"</\s*think(?:ing)?\s*>", re.IGNORECASE)
_THINK_START = re.compile(r"<\s*think(?:ing)?\s*>", re.IGNORECASE)
_ALTERNATIVE = re.compile(
    r"[\s.,;:?!$()\]*_}]*(?:\\[\])][\s.,;]*)?(?:\\text\s*\{\s*)?(?:or|alternatively|或者?)\b[\s,}:]*"
    r"(?:(?:maybe|perhaps|possibly|it|is|could|might|be|also|even|else|the|answer|option)[\s,:]+){0,6}"
    r"(?:\\\(|\\\[|[$*_(\s])*(-?\d[\d,.]*(?:/\d+)?|[A-Da-d](?![A-Za-z]))",
    re.IGNORECASE,
)
_ALTERNATIVE_BEFORE = re.compile(
    r"(-?\d[\d,]*|(?<![A-Za-z])[A-D])[$)*_\s,]*(?:\\\))?\s*\bor\b[\s,]*"
    r"(?:(?:maybe|perhaps|possibly|else|option|it|is)[\s,]+){0,3}(?:\\\(|\\\[|[$*_(\s])*$",
    re.IGNORECASE,
)


class Extracted(NamedTuple):
    """The text that a response gives as its answer.

    `others` (neighbouring boxes or statements) and `doubts` (values behind an "or") are rivals offered in the
    same breath: the answer counts only if each of them means the same. `open_ended`
    is set where nothing closes the text, so that a cut response may lack its end. `end`: where it ends.
    """

    text: str
    others: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    boxed: bool = False
    open_ended: bool = False
    end: int = 0


def final_part(response: str) -> str | None:
    """What follows the last `</think>` (all of it without one); None while a `<think>` is still open."""
    text = response[-MAX_RESPONSE:]
    if "<" not in text:
        return text
    ends = [match.end() for match in _THINK_END.finditer(text)]
    if ends:
        text = text[ends[-1] :]
    return None if _THINK_START.search(text) else text


def extract(text: str, accept_weak: Callable[[str], bool]) -> Extracted | None:
    """The final answer of `text` (a `final_part`), or None when it states none."""
    return extract_box(text) or extract_statement(text, accept_weak)


def extract_box(text: str) -> Extracted | None:
    """The last complete box, with its rivals."""
    if "box" not in text:
        return None
    boxes = find_boxes(text)
    if not boxes:
        return None
    run = enumerated(text, boxes)
    last = run[-1]
    return Extracted(
        last.text,
        others=tuple(box.text for box in run[:-1]) + last.inner_values,
        doubts=_alternatives(text, run[0].start, last.end),
        boxed=True,
        open_ended=not last.braced and last.end >= len(text),
        end=last.end,
    )


def extract_statement(text: str, accept_weak: Callable[[str], bool], start: int = 0) -> Extracted | None:
    """The last explicit statement at or after `start`, with its rivals."""
    text = text[start:]
    run = last_run(text, accept_weak)
    if not run:
        return None
    last = run[-1]
    return Extracted(
        last.value,
        others=tuple(statement.value for statement in run[:-1]),
        doubts=_alternatives(text, None, last.end),
        open_ended=last.end >= len(text.rstrip()),
        end=start + last.end,
    )


def _alternatives(text: str, start: int | None, end: int) -> tuple[str, ...]:
    """Values offered as an alternative right before `start` ("104 or [answer]") or right after `end`."""
    found = []
    after = _ALTERNATIVE.match(text[end : end + _TAIL])
    if after:
        found.append(after[1].rstrip(".,"))
    lead = "" if start is None else text[max(0, start - _LEAD) : start]
    if " or" in lead or "\nor" in lead or " OR" in lead:
        before = _ALTERNATIVE_BEFORE.search(lead)
        if before:
            found.append(before[1].rstrip(","))
    return tuple(found)
