r"""MATH: one LaTeX spelling where LaTeX has several: `\frac\pi2`, `\leqslant`, `10\text{ percent}`.

Nothing is evaluated or rounded here; what it does not know stays as it is.
"""

from __future__ import annotations

import re

from vcppo.grading.vocabulary import GREEK, UNITS

_SYNONYMS = (
    (re.compile(r"\\(?:neq|not\s*=)(?![A-Za-z])"), r"\\ne "),
    (re.compile(r"\\leq(?:slant|q)?(?![A-Za-z])"), r"\\le "),
    (re.compile(r"\\geq(?:slant|q)?(?![A-Za-z])"), r"\\ge "),
    (re.compile(r"\^\s*(?:\\degree(?![A-Za-z])|\{\s*\\degree\s*\})|\\degree(?![A-Za-z])"), r"^\\circ "),
    (re.compile(r"\\hspace\*?\{[^{}]*\}|\\(?:thin|med|thick|en)space(?![A-Za-z])"), " "),
)
_LEAD_IN = re.compile(
    r"(?:\\text\s*\{\s*(?:the\s+)?(?:(?:final|correct)\s+)?answer\s*(?:is\s*:?|[:=])\s*\}"
    r"|(?:the\s+)?(?:(?:final|correct)\s+)?answer\s*(?:is\b\s*:?|[:=]))\s*",
    re.IGNORECASE,
)
_NUMBER = r"[-+−–]?\\?\$?\d[\d,]*(?:\.\d+)?"
_TEXT_NUMBER = re.compile(rf"\\text\s*\{{\s*({_NUMBER})\s*((?:\\?%|[^{{}}\d\\%])*)\}}\.?")
_PERCENT_WORD = re.compile(
    r"(?:\\text\s*\{\s*(?:per\s?cent|\\?%)\s*\}|(?<=[\d}])\s*per\s?cent(?![A-Za-z]))\.?$"
)
_ROMAN_UNIT = re.compile(
    r"(?:(?<=[\d})])|(?<=\\pi))((?:\s|~|\\[,;: ])*)\\mathrm\s*\{"
    r"([A-Za-z/\s]{1,30})(\^\s*(?:[23]|\{[23]\}))?\}"
)
_ARGUMENT = re.compile(r"\s*(\\[A-Za-z]+|[A-Za-z\d])")
_BRACELESS = re.compile(r"\\(frac|sqrt)(?![A-Za-z])")
_DEGREES = re.compile(
    r"(\\(?:sin|cos|tan|cot|sec|csc))\s*(?:\\?left)?\s*([({])?\s*(\d{1,6}(?:\.\d{1,6})?)\s*"
    r"\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})\s*(?(2)(?:\\right)?[)}])"
)
_CHAIN = re.compile(
    r"([A-Za-z])\s*(<|>|\\[lg]e(?![A-Za-z]))\s*([^<>,]+?)\s*"
    r"(?:,?\s*\\text\s*\{\s*and\s*\}|,?\s+and\s+|\\(?:land|wedge)(?![A-Za-z]))"
    r"\s*\1\s*(<|>|\\[lg]e(?![A-Za-z]))\s*([^<>,]+)"
)


def unify(text: str) -> str:
    """`text` (fonts and sizes may still stand in it) with one spelling for each command."""
    if "\\" not in text and "er" not in text:
        return text
    for pattern, spelling in _SYNONYMS:
        text = pattern.sub(spelling, text)
    text = _LEAD_IN.sub("", text, count=1) if _LEAD_IN.match(text) else text
    text = text.strip()
    wrapped = _TEXT_NUMBER.fullmatch(text)
    if wrapped is not None:
        number, unit = wrapped[1], wrapped[2].strip()
        text = f"{number}{unit}" if unit in ("%", r"\%", "") else rf"{number}\text{{ {unit}}}"
    text = _ROMAN_UNIT.sub(_as_text, text)
    text = _PERCENT_WORD.sub(r"\\%", text)
    text = _braced(text)
    text = _DEGREES.sub(r"\1(\\frac{\3\\pi}{180})", text)
    return _chained(text)


def _as_text(match: re.Match[str]) -> str:
    """A unit in roman type as text; `2\\mathrm{i}` and other symbols stay."""
    names = re.split(r"[/\s]+", match[2].strip())
    known = all(name in UNITS or (len(name) > 3 and name.islower()) for name in names)
    return rf"{match[1]}\text{{ {match[2].strip()}}}{match[3] or ''}" if known else match.group()


def _braced(text: str) -> str:
    r"""`\frac\pi2`, `\frac{1}x` and `\sqrt\pi` with braces around each argument."""
    done, position = [], 0
    for command in _BRACELESS.finditer(text):
        if command.start() < position:
            continue
        place, parts = command.end(), []
        if command[1] == "sqrt" and (root := re.compile(r"\s*\[[^\[\]{}]{1,20}\]").match(text, place)):
            place = root.end()
        head = text[position:place]
        for _ in range(2 if command[1] == "frac" else 1):
            argument = _argument(text, place)
            if argument is None:
                break
            parts.append(argument[0])
            place = argument[1]
        else:
            done.append(head + "".join(parts))
            position = place
    return "".join(done) + text[position:]


def _argument(text: str, place: int) -> tuple[str, int] | None:
    """The argument at `place` in braces, its own commands braced too, and where it ends."""
    braced = re.compile(r"\s*\{").match(text, place)
    if braced is None:
        token = _ARGUMENT.match(text, place)
        if token is None or (token[1][0] == "\\" and token[1][1:] not in GREEK):
            return None
        return f"{{{token[1]}}}", token.end()
    depth = 0
    for end in range(braced.end() - 1, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return f"{{{_braced(text[braced.end() : end])}}}", end + 1
    return None


def _chained(text: str) -> str:
    r"""`x\ge2 \text{ and } x<5` as `2\le x<5`: two bounds of one unknown, one on each side."""
    match = _CHAIN.fullmatch(text.strip())
    if match is None:
        return text
    name, first, low, second, high = match.groups()
    if first in ("<", r"\le"):
        first, low, second, high = second, high, first, low
    if first not in (">", r"\ge") or second not in ("<", r"\le"):
        return text
    below = "<" if first == ">" else r"\le"
    return f"{low.strip()} {below} {name} {second} {high.strip()}"
