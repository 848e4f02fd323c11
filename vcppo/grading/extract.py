r"""Where a response says its final answer: after the last `</think>`, the last complete box, else the last
explicit statement. What a benchmark's grader then makes of that text is its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from vcppo.grading import boxes, statements
from vcppo.grading.alternatives import alternatives
from vcppo.grading.touching import changes_value

MAX_RESPONSE = 400_000  # characters; of a longer response only the end is read, where the answer stands

_THINK_END = re.compile(r"</\s*think(?:ing)?\s*>", re.IGNORECASE)
_THINK_START = re.compile(r"<\s*think(?:ing)?\s*>", re.IGNORECASE)
_EMPTY = re.compile(r"(?:\\(?:text|mathrm|mbox|quad|qquad)(?![A-Za-z])|\\?[,;: ]|[{}$.\s])*")


class Extracted(NamedTuple):
    """The text that a response gives as its answer.

    `others` (neighbouring boxes or statements) and `doubts` (values behind an "or") are rivals offered in the
    same breath: the answer counts only if each of them means the same. `open_ended`
    is set where nothing closes the text, so that a cut response may lack its end. `end`: where it ends.
    `altered`: mathematics touches the box and changes its value.
    """

    text: str
    others: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    boxed: bool = False
    open_ended: bool = False
    end: int = 0
    altered: bool = False


def final_part(response: str) -> str | None:
    """What follows the last `</think>` (all of it without one); None while a `<think>` is still open."""
    if "<" not in response:
        return response[-MAX_RESPONSE:]
    position = response.rfind("</")
    while position >= 0:  # from the end: each look-up goes on where the last one ended
        closing = _THINK_END.match(response, position)
        if closing:
            response = response[closing.end() :]
            break
        position = response.rfind("</", 0, position)
    return None if _THINK_START.search(response) else response[-MAX_RESPONSE:]


def extract(text: str, accept_weak: Callable[[str], bool]) -> Extracted | None:
    """The final answer of `text` (a `final_part`), or None when it states none."""
    return extract_box(text) or extract_statement(text, accept_weak)


def extract_box(text: str) -> Extracted | None:
    """The last complete box, with its rivals."""
    if "box" not in text:
        return None
    run = boxes.last_run(text, boxes.find_boxes(text))
    if not run:
        return None
    last = run[-1]
    others = last.inner_values
    if len(run) > 1:
        others = tuple(box.text for box in run[:-1] if not _EMPTY.fullmatch(box.text)) + others
    return Extracted(
        last.text,
        others=others,
        doubts=alternatives(text, run[0].start, last.end),
        boxed=True,
        open_ended=not last.braced and last.end >= len(text),
        end=last.end,
        altered=changes_value(text, last.start, last.end),
    )


def extract_statement(text: str, accept_weak: Callable[[str], bool], start: int = 0) -> Extracted | None:
    """The last explicit statement at or after `start`, with its rivals."""
    text = text[start:]
    run = statements.last_run(text, accept_weak)
    if not run:
        return None
    last = run[-1]
    head = last.head(text)
    return Extracted(
        last.value,
        others=tuple(statement.value for statement in run[:-1]),
        doubts=alternatives(text, None, last.end)
        + (alternatives(text, None, head) if head < last.end else ()),
        open_ended=last.end >= len(text.rstrip()),
        end=start + last.end,
    )
