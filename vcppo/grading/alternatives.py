"""Values that a text offers beside its answer without stating them as one: "104 or [answer]", "42 / 43"."""

from __future__ import annotations

import re

_LEAD, _TAIL = 60, 120  # characters before and behind an answer in which an alternative to it is looked for
_FILL = (
    r"(?:(?:maybe|perhaps|possibly|it|is|could|might|may|be|also|even|else|the|that|answer|option)[\s,:]+)"
)
_MAY_BE = r"(?:could|might|may)\s+(?:(?:also|equally|well|as|just|even|possibly)\s+)*be\b"
_OPEN = r"(?:\\\(|\\\[|[$*_(\s])*"
_VALUE = r"(-?\d[\d,.]*(?:/\d+)?|[A-Da-d](?![A-Za-z]))"
_ALTERNATIVE = re.compile(
    r"[\s.,;:?!$()\[\]*_}]*(?:\\[\])][\s.,;]*)?(?:\\text\s*\{\s*)?"
    r"(?:(?:or|alternatively|versus|vs|as well as|maybe|perhaps|possibly|或者?)\b[\s,}:.]*"
    rf"|(?:(?:but|though|although|yet|and|it|this|that|which|the|answer)[\s,]+){{0,4}}{_MAY_BE}[\s,:]*)"
    rf"{_FILL}{{0,6}}{_OPEN}{_VALUE}",
    re.IGNORECASE,
)
_CASES = re.compile(
    r"[\s$*_)]*(?:\(\s*|,?\s*(?:if|when|assuming|unless)\b[^.\n]{1,60}?[,;]\s*(?:(?:and|or|but)\s+)?)"
    rf"{_OPEN}(-?\d[\d,]*|\(?[A-D](?![A-Za-z]))[$)\s]*(?:if|when|otherwise|assuming|unless)\b",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"[$)*_ \t]*(?:\\\))?(?:[ \t]*/|[ \t]+[-–—](?=[ \t]))[ \t]*(?:\\\(|[$(*_ \t])*"
    r"(-?\d[\d,]*(?:\.\d+)?|[A-D](?![A-Za-z]))(?=[ \t$)*_.,;]*(?:$|\n|\\\)|or\b))"
)
_ALSO = re.compile(
    r"[\s$*_)\].,;]*(?:\\\))?(?:\(\s*)?(?:(?:but|though|although|and|while|however)[\s,]+)?(?:option\s+)?"
    rf"{_OPEN}(-?\d[\d,]*|\(?[A-D](?![A-Za-z]))[$)\s]*"
    r"(?:is|are|would be|seems?|could be|might be|may be|works)\s+"
    r"(?:also|equally|just as|as well|possible|plausible|too)\b(?!\s+(?:wrong|incorrect|false|not|excluded))",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"[$)*_ \t]*(?:\\[)\]])?[ \t]*(?:[,;&]|,?[ \t]and\b)[ \t]*(?:\\[(\[]|[$(*_ \t])*(-?\d+(?:\.\d+)?)"
    r"(?=[ \t$)*_.,;]*(?:\\[)\]])?[ \t$)*_.,;]*(?:$|\n)|[$ \t]*(?:,|;|,?[ \t]*(?:or|and)\b)[ \t$]*-?\d)"
)
_CLOSING = "$)]\\*_ \t"  # may stand between an answer and what goes on after it
_LIST_MARKS = frozenset(",;&a")  # begin a comma, a semicolon, an "and"
_ALTERNATIVE_BEFORE = re.compile(
    r"(-?\d[\d,]*|(?<![A-Za-z])[A-D])[$)*_\s,;]*(?:\\\))?[\s,;(\[]*"
    rf"(?:\b(?:or|maybe|perhaps|possibly|vs|versus)\b[\s,.]*{_FILL}{{0,3}}"
    rf"|(?:(?:but|though|it|this|the|answer)\s+){{0,3}}{_MAY_BE}\s*){_OPEN}$",
    re.IGNORECASE,
)


def alternatives(text: str, start: int | None, end: int) -> tuple[str, ...]:
    """Values offered as an alternative right before `start` ("104 or [answer]") or right after `end`."""
    found = []
    tail = text[end : end + _TAIL]
    if len(tail) > 3 and (_may_offer(tail.lower()) or _may_be_range(tail)):
        for pattern in (_ALTERNATIVE, _CASES, _RANGE, _ALSO):
            after = pattern.match(tail)
            if after:
                found.append(after[1].strip("(.,"))
    if start is not None and len(tail) > 1 and tail.lstrip(_CLOSING)[:1] in _LIST_MARKS:
        listed = _LISTED.match(tail)
        if listed:
            found.append(listed[1])
    lead = "" if start is None else text[max(0, start - _LEAD) : start]
    if lead and _may_offer(lead.lower()):
        before = _ALTERNATIVE_BEFORE.search(lead)
        if before:
            found.append(before[1].rstrip(","))
    return tuple(found)


def _may_offer(text: str) -> bool:
    """Whether `text` may hold a word of doubt: a cheap look before the costly patterns."""
    return (
        " or" in text or "\nor" in text or "{or" in text or "(or" in text or "[or" in text or "ma" in text
        or "per" in text or "pos" in text
        or "vers" in text or "vs" in text or "ould" in text or "igh" in text or "或" in text
    )  # fmt: skip


def _may_be_range(text: str) -> bool:
    return (
        "/" in text or "- " in text or "– " in text or "— " in text or "if" in text or "when" in text
        or "unless" in text or "assum" in text or "as " in text or "lternat" in text or "also" in text
        or "equally" in text or "plaus" in text or " too" in text
    )  # fmt: skip
