r"""Explicit answer statements in prose: `Answer: 42`, `# Answer`, `<answer>42</answer>`, "the answer is 42".

A strong statement (a label, heading or tag) counts whatever follows it. A weak one (a sentence) counts only
where its value looks like an answer of the benchmark (the caller decides): "the answer is clear" is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from vcppo.grading.boxes import is_enumeration_gap

_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL
_TAG = re.compile(r"<answer>(?P<tag>.{0,600}?)</answer>", _FLAGS)
_LABEL = re.compile(
    r"(?<![A-Za-z])answer(?:"
    r"(?:\s{1,4}to\s{1,4}[^\n:：.]{1,60})?[\s*_`)]{0,6}(?:\s(?:is|are)[ \t*_]{0,4})?[:：]"
    r"|[ \t*_]{0,4}(?:[ \t][-–—][ \t]+|=[ \t]*)(?=[$\\(\[]{0,2}(?:[-+]?\d|[A-D](?![A-Za-z]))))",
    _FLAGS,
)
_HEADING = re.compile(
    r"[ \t]{0,8}(?:(?:\#{1,6}|\*\*|__)[ \t]{0,4})?(?:the[ \t]{1,4})?(?:(?:final|correct)[ \t]{1,4})?"
    r"answer[ \t]{0,4}[*_]{0,2}[ \t]{0,8}$",
    _FLAGS,
)
_CHINESE = re.compile(r"答案(?:应该)?(?:\s{0,4}[是为：:]){1,3}")
_HASHES = re.compile(r"(?<![^\n])\#{4}[ \t]+(?=\$?[-+]?[\d,]+(?:\.\d+)?\$?[ \t]*$)", _FLAGS)
_WEAK = re.compile(
    r"(?<![A-Za-z])answers?(?:\s{1,4}to\s{1,4}[^\n:：.]{1,60}?)?\s{1,4}"
    r"(?:is|are|must be|should be|equals|was)(?![A-Za-z'’])"
    r"(?:[\s,]{0,4}(?:therefore|thus|then|hence|so|simply|just|indeed|clearly|exactly|equal to|option|choice"
    r"|now)\b){0,4}"
    r"[\s,]{0,4}[*_]{0,2}",
    re.IGNORECASE,
)
_OPENINGS = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}
_JOINT = re.compile(r"[\s*_]*(?:,|;|/|,?\s*(?:or|and|或|和))[\s*_]*(?=\$|\\\()", re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"[.。](?=\s|[*_]|$)|[;；](?=\s+[A-Za-z]{2})|\s+\((?!or\b|and\b)(?=[A-Za-z]{2})"
    r"|,?\s+(?:because|since|which|where|as|so|for|when|with|by|that)\b"
    r"|\s[–—-]\s",
    re.IGNORECASE,
)
_MAX_MARKERS = 200  # of each word, from the end; a text with more has no answer worth the time
MAX_VALUE = 600  # characters after a marker that may belong to its value


class Statement(NamedTuple):
    """An answer statement: the marker at `start`, its `value`, and the end of the value in the text."""

    value: str
    start: int
    end: int


def last_run(text: str, accept_weak: Callable[[str], bool]) -> list[Statement]:
    """The last statement after those that stand beside it uncorrected; empty where there is none."""
    run: list[Statement] = []
    for anchor in _anchors(text):
        statement = _statement(text, anchor, accept_weak)
        if statement is None:
            continue
        if run and (
            statement.end > run[0].start or not is_enumeration_gap(text[statement.end : run[0].start])
        ):
            break
        run.insert(0, statement)
    return run


def _anchors(text: str) -> list[int]:
    """Where "answer", "答案" or "####" stand, last first, at most `_MAX_MARKERS` of each."""
    lower = text.lower()
    if len(lower) != len(text):  # the small form of some letters is longer; places must stay what they are
        lower = text
    found = []
    for word in ("answer", "答案", "####"):
        position = lower.rfind(word)
        for _ in range(_MAX_MARKERS):
            if position < 0:
                break
            found.append(position)
            position = lower.rfind(word, 0, position)
    return sorted(found, reverse=True)


def _statement(text: str, anchor: int, accept_weak: Callable[[str], bool]) -> Statement | None:
    """The statement whose marker has its word at `anchor`, if there is one."""
    if text[anchor] in "答#":
        marker = (_CHINESE if text[anchor] == "答" else _HASHES).match(text, anchor)
        return None if marker is None else _from_marker(text, marker)
    weak = _WEAK.match(text, anchor)
    if weak is not None:
        statement = _from_marker(text, weak)
        if accept_weak(statement.value):
            return statement
    strong = (
        _LABEL.match(text, anchor)
        or _TAG.match(text, max(0, anchor - 1))
        or _HEADING.match(text, text.rfind("\n", 0, anchor) + 1)
    )
    return None if strong is None else _from_marker(text, strong)


def _from_marker(text: str, marker: re.Match[str]) -> Statement:
    if marker.re is _TAG:
        return Statement(marker["tag"].strip(), marker.start(), marker.end())
    value, end = read_value(text, marker.end())
    return Statement(value, marker.start(), end)


def read_value(text: str, position: int) -> tuple[str, int]:
    """The value behind a marker that ends at `position`, in the rest of its line or the next one.

    Math delimiters go, and what follows the first sentence; values joined by "and", "or", commas stay.
    """
    rest = text[position : position + MAX_VALUE]
    lead = len(rest) - len(rest.lstrip(" \t\n\r*_#`:："))
    rest = rest[lead:]
    start = position + lead
    parts: list[str] = []
    consumed = 0
    while opening := next((mark for mark in _OPENINGS if rest.startswith(mark, consumed)), None):
        inside = consumed + len(opening)
        close = rest.find(_OPENINGS[opening], inside)
        if close < 0:
            break
        parts.append(rest[inside:close].strip())
        consumed = close + len(_OPENINGS[opening])
        joint = _JOINT.match(rest, consumed)
        if joint is None:
            break
        parts.append(joint.group().strip(" *_\n") if joint.group().strip() else ",")
        consumed = joint.end()
    if parts:
        line = rest[consumed:].partition("\n")[0]
        tail = "" if re.match(r"[\s*_]*(?:[.,;。(]|[A-Za-z]{2,}|$)", line) else line
        if re.match(r"[\s*_,]*(?:or|and|maybe|或)\b", line, re.IGNORECASE):
            tail = line
        return (" ".join([*parts, tail.strip()])).strip(" *_"), start + consumed + len(tail)
    line = rest.partition("\n")[0]
    cut = _SENTENCE_END.search(line)
    value = line[: cut.start()] if cut else line
    return value.strip(" \t\r*_`"), start + len(value)
