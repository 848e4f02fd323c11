r"""Mathematics that touches a box and changes its value: `-\boxed{42}`, `\boxed{42}^2`, `$\boxed{42}.5$`.

What only names a unit (`\boxed{42}^\circ`, `\boxed{42}\%`), ends a sentence or lists the box (`- \boxed{42}`)
changes nothing. Where a mark has one meaning in prose and another in a formula (`!`, a dash, a digit), what
surrounds the box decides.
"""

from __future__ import annotations

import re

_LEAD = 40  # characters before a box in which an operator on it is looked for
_NAME = 9  # characters of the longest command that may be one
_BLANK = frozenset(" \t$")
_GAP = r"(?:[ \t]|\\[,;:! ])*"
_SUSPECT = frozenset("0123456789-−–+*/·×÷√≠^_{=")
_AFTER_COMMAND = frozenset(",;:!")  # may end a spacing command, with an operator before it
_HARMLESS = frozenset(("", "$", "\n", "}", ")"))

_NOT_EQUAL = re.compile(rf"(?:\\neq?(?![A-Za-z])|\\not\s*(?:=|\\equiv(?![A-Za-z]))|≠|!=){_GAP}\$?{_GAP}$")
_BEFORE = re.compile(
    rf"(?:=\s*[-−]{_GAP}|(?<![A-Za-z][A-Za-z])(?<![-−])[-−])\$?$"
    rf"|\^\s*\{{?{_GAP}$|(?:\\sqrt(?:\s*\[[^\]]*\])?|√)\s*\{{?{_GAP}$"
    rf"|\\[dtc]?frac\s*(?:\{{[^{{}}]*\}}\s*)?\{{{_GAP}$"
)
_FORMULA_BEFORE = re.compile(
    rf"\d$|[-−–]{_GAP}$|[\w)}}]\s*[+*/·×÷]{_GAP}$|\w_\s*\{{?{_GAP}$"
    rf"|\\(?:cdot|times|div|pm|mp|log|ln|exp|sin|cos|tan|pi)(?![A-Za-z]){_GAP}$"
)
_BEHIND = re.compile(
    rf"{_GAP}(?:\^\s{{0,4}}\{{?\s{{0,4}}(?!\\(?:circ|degree|text|mathrm|prime|dagger|ast)|[*{{}}°])\S"
    r"|_\s{0,4}\{?\s{0,4}(?:\d|\\text)|\+\s*\d|\\(?:cdot|times|div|pm|mp)(?![A-Za-z]))"
    r"|\.\d|,\d{3}(?!\d)|\{,\}\d|[*/]\d"
)
_FORMULA_BEHIND = re.compile(
    rf"{_GAP}(?:!(?!=)|\{{?\d"
    r"|[-−–+*/·×÷]\s*(?:[\d(]|[A-Za-z](?![A-Za-z])|\\(?:frac|sqrt|pi)(?![A-Za-z]))"
    r"|\\(?:pi|sqrt|[dtc]?frac|binom)(?![A-Za-z])|[√π]"
    r"|[abceijknpqrtuvwxyz](?![A-Za-z]))"  # a letter that names no unit
)
_DELIMITER = re.compile(r"\\\\|\\\$|\$\$?")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def changes_value(text: str, start: int, end: int) -> bool:
    """Whether what touches the box from `start` to `end` of `text` makes its value another one."""
    if text[end : end + 1] not in _HARMLESS and _is_changed_behind(text, start, end):
        return True
    return start > 0 and _is_changed_before(text, start, end)


def _is_changed_behind(text: str, start: int, end: int) -> bool:
    if text[end] == "." and not text[end + 1 : end + 2].isdecimal():
        return False
    if _BEHIND.match(text, end) is not None:
        return True
    return _FORMULA_BEHIND.match(text, end) is not None and _is_in_formula(text, start, end)


def _is_changed_before(text: str, start: int, end: int) -> bool:
    place = start - 1
    while place > 0 and text[place] in _BLANK:
        place -= 1
    last = text[place]
    if last not in _SUSPECT and (
        not (last.isalpha() or last in _AFTER_COMMAND) or text.rfind("\\", max(0, place - _NAME), place) < 0
    ):
        return False
    lead = text[max(0, start - _LEAD) : start]
    if last == "=" and text[place - 1] != "!" and "\\not" not in lead:
        return False
    if _NOT_EQUAL.search(lead) is not None or _BEFORE.search(lead) is not None:
        return True
    return _FORMULA_BEFORE.search(lead) is not None and _is_in_formula(text, start, end)


def _is_in_formula(text: str, start: int, end: int) -> bool:
    r"""Whether the box stands between delimiters of a formula: `$`, `\(`, `\[` or an environment."""
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("\\begin{", "\\end{")):
        if text.rfind(opening, 0, start) > text.rfind(closing, 0, start):
            return True
    first = text.rfind("\n\n", 0, start) + 1
    last = text.find("\n\n", end)
    before = [match.end() for match in _DELIMITER.finditer(text, first, start) if match[0][0] == "$"]
    stop = last if last >= 0 else len(text)
    behind = [match.end() for match in _DELIMITER.finditer(text, end, stop) if match[0][0] == "$"]
    if not before or not behind:
        return False
    if len(before) % 2 == len(behind) % 2:
        return len(before) % 2 == 1
    return _WORD.search(text, before[-1], start) is None  # an amount in dollars breaks the count
