r"""Explicit answer statements in prose: `Answer: 42`, `# Answer`, `<answer>42</answer>`, "the answer is 42".

A strong statement (a label, heading or tag) counts whatever follows it. A weak one (a sentence) counts only
where its value looks like an answer of the benchmark (the caller decides): "the answer is clear" is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from vcppo.grading.boxes import is_enumeration_gap

_STRONG = re.compile(
    r"<answer>(?P<tag>.{0,600}?)</answer>"
    r"|(?<![A-Za-z])answer(?:\s{1,4}to\s{1,4}[^\n:：.]{1,60})?[\s*_`)]{0,6}(?:\s(?:is|are)[ \t*_]{0,4})?[:：]"
    r"|答案(?:应该)?(?:\s{0,4}[是为：:]){1,3}"
    r"|^[ \t]*(?:\#{1,6}[ \t]*|\*\*[ \t]*|__[ \t]*)(?:the[ \t]+)?(?:final[ \t]+|correct[ \t]+)?"
    r"answer[ \t]*[*_]{0,2}[ \t]*$"
    r"|^[ \t]*\#{4}[ \t]+(?=\$?[-+]?[\d,]+(?:\.\d+)?\$?[ \t]*$)"
    r"|(?<![A-Za-z])answer[ \t*_]{0,4}(?:[ \t][-–—][ \t]+|=[ \t]*)"
    r"(?=[$\\(\[]{0,2}(?:[-+]?\d|[A-D](?![A-Za-z])))",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
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
    r"[.。](?=\s|[*_]|$)|[;；]|\s+\((?=[A-Za-z]{2})|,?\s+(?:because|since|which|where|as|so|for|when|with|by|that)\b"
    r"|\s[–—-]\s",
    re.IGNORECASE,
)
_MAX_MARKERS = 200  # looked at from the end; a text with more has no answer worth the time
MAX_VALUE = 600  # characters after a marker that may belong to its value


@dataclass(frozen=True)
class Statement:
    """An answer statement: the marker at `start`, its `value`, and the end of the value in the text."""

    value: str
    start: int
    end: int


def last_run(text: str, accept_weak: Callable[[str], bool]) -> list[Statement]:
    """The last statement after those that stand beside it uncorrected; empty where there is none."""
    markers = [*_STRONG.finditer(text), *_WEAK.finditer(text)]
    markers.sort(key=lambda match: match.start())
    run: list[Statement] = []
    for match in reversed(markers[-_MAX_MARKERS:]):
        strong = match.re is _STRONG
        tag = match["tag"] if strong else None
        value, end = (tag.strip(), match.end()) if tag is not None else read_value(text, match.end())
        if not strong and not accept_weak(value):
            continue
        if run and (end > run[0].start or not is_enumeration_gap(text[end : run[0].start])):
            break
        run.insert(0, Statement(value, match.start(), end))
    return run


def read_value(text: str, position: int) -> tuple[str, int]:
    """The value behind a marker that ends at `position`, in the rest of its line or the next one.

    Math delimiters go, and what follows the first sentence; values joined by "and", "or", commas stay.
    """
    rest = text[position : position + MAX_VALUE]
    lead = len(rest) - len(rest.lstrip(" \t\n\r*_#>`:：~"))
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
