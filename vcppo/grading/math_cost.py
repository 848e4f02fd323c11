"""Answers that would burn a worker: towers and huge powers of numbers, factorials, deep nesting.

A cheap look at the text, before any algebra. It need not catch everything: the pool kills what slips through.
"""

from __future__ import annotations

import math
import re

_MAX_FACTORIAL = 100
_MAX_DIGITS = 5_000
_MAX_EXPONENT_DEPTH = 2


def costly(text: str) -> bool:
    """Whether evaluating `text` may burn seconds: towers, huge powers of numbers, factorials beyond 100!."""
    flat = re.sub(r"\\(?:left|right)|[\s{}()]|\\[,;!: ]", "", text.replace("**", "^"))
    for match in re.finditer(r"\d+(?:\.\d+)?(?:\^-?\d+(?:\.\d+)?)+", flat):
        numbers = [float(number) if len(number) < 300 else math.inf for number in match.group().split("^")]
        if _digits_of_tower(numbers) > _MAX_DIGITS:
            return True
    if re.search(r"!\s*!|\([^()A-Za-z]*\)\s*!|\{[^{}A-Za-z]*\}\s*!", text):
        return True
    huge_binomial = any(len(number) > 3 for number in re.findall(r"binom\s*\{?\s*(\d+)", text))
    if huge_binomial or _exponent_depth(text) > _MAX_EXPONENT_DEPTH:
        return True
    return any(len(number) > 3 or int(number) > _MAX_FACTORIAL for number in re.findall(r"(\d+)\s*!", text))


def _exponent_depth(text: str) -> int:
    """How many exponents stand in each other: 1 in `e^{x}`, 2 in `e^{x^2}`."""
    deepest = 0
    groups: list[bool] = []  # of the open braces, whether each is an exponent
    for match in re.finditer(r"\^\s*\{|\^|[{}]", text):
        piece = match.group()
        if piece == "}":
            if groups:
                groups.pop()
            continue
        if piece[0] == "^":
            deepest = max(deepest, sum(groups) + 1)
        if piece[-1] == "{":
            groups.append(piece[0] == "^")
    return deepest


def _digits_of_tower(numbers: list[float]) -> float:
    """Decimal digits of a^(b^(c^...)), infinite when it does not fit a float."""
    exponent = 1.0
    for number in reversed(numbers[1:]):
        try:
            exponent = abs(number) ** exponent
        except OverflowError:
            return math.inf
    return exponent * math.log10(max(abs(numbers[0]), 1.0)) if exponent < math.inf else math.inf


def depth(text: str) -> int:
    """How deep the brackets of `text` nest."""
    level = deepest = 0
    for character in text:
        if character in "{([":
            level += 1
            deepest = max(deepest, level)
        elif character in "})]":
            level -= 1
    return deepest
