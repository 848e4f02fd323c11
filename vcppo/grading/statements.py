r"""Explicit answer statements in prose: `Answer: 42`, `# Answer`, `<answer>42</answer>`, "the answer is 42".

A strong statement (a label, heading or tag) counts whatever follows it. A weak one (a sentence) counts only
where its value looks like an answer of the benchmark (the caller decides): "the answer is clear" is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from vcppo.grading.rivals import is_denied_after, is_enumeration_gap, is_qualified, offer

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
    r"(?:is|are|(?:must|should|would|will|has to|can only)\s{1,4}be|equals|was|becomes"
    r"|(?:turns|comes|works)\s{1,4}out\s{1,4}(?:to\s{1,4}be|as|to)|comes\s{1,4}to)(?![A-Za-z'’])"
    r"(?:\s{1,4}(?:given\s{1,4}by|found\s{1,4}to\s{1,4}be)(?![A-Za-z]))?"
    r"(?:[\s,]{0,4}(?:therefore|thus|then|hence|so|simply|just|indeed|clearly|exactly|equal to|option|choice"
    r"|now|definitely|certainly|obviously|surely|precisely|actually|ultimately|in fact|of course"
    r"|most likely)\b){0,4}"
    r"[\s,]{0,4}[*_]{0,2}",
    re.IGNORECASE,
)
_OPENINGS = {"$$": "$$", "$": "$", "\\(": "\\)", "\\[": "\\]"}
_JOINT = re.compile(r"[\s*_]*(?:,|;|/|,?\s*(?:or|and|或|和))[\s*_]*(?=\$|\\\()", re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"[.。](?=\s|[*_]|$)|[;；](?=\s+[A-Za-z]{2})|\s+\((?!or\b|and\b)(?=[A-Za-z]{2})"
    r"|,?\s+(?:because|since|which|where|as|so|for|when|with|by|that)\b"
    r"|,?\s+and\s+(?:we|that|this|nothing|hence|thus|I|you)\b(?!\s+(?:could|might|may)\b)"
    r"|\s[–—-]\s",
    re.IGNORECASE,
)
_AFTER_TEXT = re.compile(r"</[A-Za-z_]|<\||</?s>")  # a closing tag or an end token is no part of a value
_FIRST_WORD = re.compile(
    r"(?:\$[^$\n]{0,80}\$|\\\([^\n]{0,80}?\\\)|[^\s,;]+?(?=\.?(?:[\s,;]|$)))"
    r"(?:\s+[\d.,]*\d(?:\s?[A-Za-zμ°%]{1,3}(?![A-Za-z]))?)?"
)
_SENTENCE = re.compile(r"(?:[^.\n]|\.(?=\S)){0,160}")
_MAX_MARKERS = 200  # of each word, from the end; a text with more has no answer worth the time
MAX_VALUE = 600  # characters after a marker that may belong to its value


class Statement(NamedTuple):
    """An answer statement: the marker at `start`, its `value` from `inside` to `end` of the text."""

    value: str
    start: int
    inside: int
    end: int

    def head(self, text: str) -> int:
        """Where the first word or formula of the value in `text` ends."""
        if " " not in self.value:
            return self.end
        word = _FIRST_WORD.match(text, self.inside)
        return self.inside if word is None else word.end()


def last_run(text: str, accept_weak: Callable[[str], bool]) -> list[Statement]:
    """The last statement that is not denied, after its rivals; empty where there is none.

    Rivals are the statements right before it, as far as nothing leads from one to the next. One whose own
    sentence restricts it ("A as a first guess, but it fails") is none, unless the next is offered as an
    alternative to it.
    """
    run: list[Statement] = []
    for anchor in _anchors(text):
        statement = _statement(text, anchor, accept_weak)
        if statement is None or is_denied_after(text, statement.head(text)):
            continue
        if not run:
            run.append(statement)
            continue
        if statement.inside > run[0].start:
            continue  # a tag or heading around the statement
        rival = _rival(text, statement, run[0].start)
        if rival is None:
            break
        run.insert(0, rival)
    return run


def _rival(text: str, statement: Statement, next_start: int) -> Statement | None:
    """`statement` as a rival of the one whose marker is at `next_start`, or None where that replaces it."""
    if statement.end > next_start:  # "43 or the [answer is 42]": the value ends before the words of doubt
        shared = text[statement.inside : next_start]
        cut = offer(shared)
        if not cut:
            return None
        return statement._replace(value=shared[:cut].rstrip(" ,;("), end=statement.inside + cut)
    gap = text[statement.end : next_start]
    if not statement.value or not is_enumeration_gap(gap):
        return None
    sentence = _SENTENCE.match(text, statement.inside, next_start)
    if sentence is not None and is_qualified(sentence.group()) and offer(gap) is None:
        return None
    return statement


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
        return Statement(marker["tag"].strip(), marker.start(), marker.start("tag"), marker.end())
    return _read_value(text, marker.start(), marker.end())


def _read_value(text: str, marker: int, position: int) -> Statement:
    """The value behind the marker from `marker` to `position`, in the rest of its line or the next one.

    Math delimiters go, and what follows the first sentence; values joined by "and", "or", commas stay.
    """
    rest = text[position : position + MAX_VALUE]
    if "<" in rest:
        rest = _AFTER_TEXT.split(rest, maxsplit=1)[0]
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
        value = (" ".join([*parts, tail.strip()])).strip(" *_")
        return Statement(value, marker, start, start + consumed + len(tail))
    line = rest.partition("\n")[0]
    cut = _SENTENCE_END.search(line)
    value = line[: cut.start()] if cut else line
    return Statement(value.strip(" \t\r*_`"), marker, start, start + len(value))
