r"""MATH: what the text alone decides, and what is refused before any algebra runs.

Math-Verify drops what it does not know, so that `11_5` and `11_6` or `(1,2)` and `2,1` come out equal; such
differences are settled here. Answers that would burn a worker (towers of powers, huge
factorials, deep nesting) are refused here too: they are right only where they are spelled like the gold.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

from vcppo.grading.math_latex import unify
from vcppo.grading.math_refusals import closing_bracket, refusal, time_of_day
from vcppo.grading.spelling import plain_unicode

_SYMBOLS = str.maketrans(
    {"×": r"\times ", "·": r"\cdot ", "÷": r"\div ", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ",
     "≥": r"\ge ", "≠": r"\ne ",
     "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "±": r"\pm ", "°": r"^\circ ", "√": r"\sqrt ",
     "∅": r"\emptyset ", "≈": r"\approx ", "²": "^2", "³": "^3", "½": r"\frac{1}{2}"}
)  # fmt: skip
_SPACING = re.compile(
    r"\\(?:left|right|bigl?|bigr?|Bigl?|Bigr?|displaystyle|textstyle|qquad|quad)(?![A-Za-z])"
    r"|\\color\{[^{}]*\}|(?<!\\)\\[!/()\[\]]|(?<!\\)\$"
)
_THIN_BACK = re.compile(r"(\d|,|\{,\})(?:\\!)+(?=\d|,|\{,\})")  # in "10,\!080" it is nothing
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(?:(\d)|\{(\d+)\})\s*(?:(\d)|\{(\d+)\})")
_SPACED_THOUSANDS = re.compile(r"\d{1,3}(?: \d{3})+")
_FULL_STOP = re.compile(r"(?<!\.)[.,;]$")
_E_NOTATION = re.compile(r"^(-?\d+(?:\.\d+)?)[eE]([+-]?\d{1,3})$")
_SUBSCRIPT = re.compile(r"_\s*(?:\{[^{}]*\}|\d)")
_APPROXIMATELY = re.compile(r"\\approx(?![A-Za-z])")
_AND = re.compile(r",?\s*\\(?:text|mbox|textrm|mathrm)\s*\{\s*(?:and|or)\s*\}\s*|,?\s+(?:and|or)\s+")
_THOUSANDS = re.compile(r"(?<=\d)\s*(?:\{,\}|\\[,;: ]|~)+\s*(?=\d{3}(?!\d))")
_THIN = re.compile(r"(?<!\\)\\[,;: ]|~")
_FONT = re.compile(r"\\(?:math(?:bf|it|sf|tt|normal|rm)|bm|boldsymbol|textbf|textit|emph|pmb)\s*\{([^{}]*)\}")
_TEXT = re.compile(r"\\(?:text(?:rm|sf|tt|normal)?|mbox|operatorname|mathrm)\s*\{([^{}]*)\}")
_REPEATING = re.compile(r"(-?)(\d*)\.(\d*)\\overline\s*\{(\d+)\}")
_PERCENT_NUMBER = re.compile(r"(?<![\w.}])(\d[\d,]*(?:\.\d+)?|\.\d+)\s*\\?%")
_PERCENT_END = re.compile(r"\s*\\?%$")
_WORDS = re.compile(r"[A-Za-z][A-Za-z '\-.]*")
_FUNCTIONS = re.compile(r"\b(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi|max|min|gcd|lcm)\b")
_SPLIT_NUMBER = re.compile(r"[\d.]\s+[\d.]")
_NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)")
_RATIO = re.compile(
    r"(-?)(\d{0,30})\s*(?:\\frac\s*\{(\d{1,30})\}\s*\{(\d{1,30})\}|(\d{1,30})\s*/\s*(\d{1,30}))"
)


class Decision(NamedTuple):
    """What the text decides, and why."""

    status: Literal["right", "wrong", "no_answer"]
    detail: str = ""


def normalize(text: str) -> str:
    r"""One spelling for one value: no delimiters or fonts, percent and repeating decimals as fractions."""
    text = _THIN_BACK.sub(r"\1", plain_unicode(text).translate(_SYMBOLS))
    text = unify(_FRACTION.sub(r"\\frac", _SPACING.sub(" ", text)))
    text = _FONT.sub(r"\1", _FONT.sub(r"\1", text))
    text = _SHORT_FRACTION.sub(lambda m: rf"\frac{{{m[1] or m[2]}}}{{{m[3] or m[4]}}}", text)
    text = _THIN.sub(" ", _THOUSANDS.sub(",", text)).replace("\\$", "").replace(r"\varnothing", r"\emptyset")
    text = _APPROXIMATELY.split(text)[0]  # "2\pi \approx 6.28" gives the exact value first
    text = text.strip().lstrip("=").strip()
    text = _FULL_STOP.sub("", text).strip()
    text = _E_NOTATION.sub(r"\1\\times 10^{\2}", text)
    text = _AND.sub(", ", text)
    if _SPACED_THOUSANDS.fullmatch(text):
        text = text.replace(" ", "")
    text = _REPEATING.sub(_repeating_as_fraction, text)
    text = _PERCENT_NUMBER.sub(r"\\frac{\1}{100}", text)
    if _PERCENT_END.search(text):
        text = rf"\frac{{{_PERCENT_END.sub('', text)}}}{{100}}"
    while text.startswith("{") and text.endswith("}") and closing_bracket(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _repeating_as_fraction(match: re.Match[str]) -> str:
    sign, whole, fixed, repeated = match.groups()
    if len(whole + fixed + repeated) > 30:
        return match.group()
    nines = 10 ** len(fixed) * (10 ** len(repeated) - 1)
    value = Fraction(int((whole + fixed + repeated) or "0") - int((whole + fixed) or "0"), nines)
    return rf"{sign}\frac{{{value.numerator}}}{{{value.denominator}}}"


def decide(answer: str, gold: str) -> Decision | None:
    """Decide `answer` against `gold` (both from `normalize`) on their text; None leaves it to the algebra."""
    words = as_words(gold)
    flat, flat_gold = squeeze(answer), squeeze(gold)
    if not flat.strip("{}$\\.,") and r"\{" not in flat:
        return Decision("no_answer", "empty answer")
    if _SPLIT_NUMBER.search(_SUBSCRIPT.sub("", answer)) and not _SPLIT_NUMBER.search(gold):
        return Decision("wrong", "two numbers side by side")
    if flat == flat_gold:
        return Decision("right")
    if words is not None:
        same = words == (as_words(answer) or _plain_words(answer))
        return Decision("right") if same else Decision("wrong", "another word")
    if (time := time_of_day(gold)) is not None and time == time_of_day(answer):
        return Decision("right")
    values = {value for side in answer.split("=") if (value := as_number(side)) is not None}
    if len(values) > 1:
        return Decision("wrong", "a false equation")
    reason = refusal(answer, gold)
    return None if reason is None else Decision("wrong", reason)


def squeeze(text: str) -> str:
    r"""`text` without blanks and `\text` wrappers, to compare spellings."""
    return re.sub(r"\s+", "", _TEXT.sub(r"\1", text))


def as_words(text: str) -> str | None:
    """The words that `text` consists of, folded; None for mathematics."""
    plain = _plain_words(text)
    if _TEXT.fullmatch(text.strip()) and re.search("[A-Za-z]", plain) and not re.search(r"\d", plain):
        return plain
    bare = _WORDS.fullmatch(text.strip()) and len(plain) >= 3 and not _FUNCTIONS.search(text.lower())
    return plain if bare and re.search("[a-z]{2}", text) else None


def _plain_words(text: str) -> str:
    return re.sub(r"\s+", " ", _TEXT.sub(r"\1", text)).strip(" ().\"'").casefold()


def same_value(first: str, second: str) -> bool:
    """Whether two answers are spelled alike or are the same plain number."""
    first, second = normalize(first), normalize(second)
    if squeeze(first) == squeeze(second):
        return True
    one, other = as_number(first), as_number(second)
    return one is not None and one == other


def as_number(text: str) -> Fraction | None:
    """The value of a plain integer, decimal, fraction or mixed number; None for anything else."""
    text = text.strip()
    if len(text) > 80:
        return None
    if _NUMBER.fullmatch(text):
        return Fraction(text.replace(",", ""))
    ratio = _RATIO.fullmatch(text)
    if ratio is None or int(ratio[4] or ratio[6]) == 0 or (ratio[2] and ratio[5]):
        return None
    value = int(ratio[2] or 0) + Fraction(int(ratio[3] or ratio[5]), int(ratio[4] or ratio[6]))
    return -value if ratio[1] else value
