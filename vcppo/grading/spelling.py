r"""Spellings: how one value may be written. Unicode digits and signs, LaTeX wrappers, thousands, integers.

Nothing here evaluates an expression: `6\cdot 7` and `902!` are no spellings of an integer.
"""

from __future__ import annotations

import re
import unicodedata

from vcppo.grading.vocabulary import NOT_UNITS

_SIGNS = dict.fromkeys(map(ord, "−–—‐‑‒﹣"), "-")
_FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_SPACES = dict.fromkeys(map(ord, "\u3000\u00a0\u2009\u202f\u2002\u2003"), " ")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"), None)
_TABLE = _FULL_WIDTH | _SIGNS | _SPACES | _INVISIBLE

_DECORATION = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|bf|rm|it|Large|large|LARGE|huge|Huge|normalsize|limits)(?![A-Za-z])"
    r"|\\[!/]|\\phantom\{[^{}]*\}|\\color\{[^{}]*\}"
)
_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|color\{[^{}]*\})?|math(?:bf|rm|it|sf|tt|bb|normal)|bm|boldsymbol|emph|mbox"
    r"|underline|operatorname|pmb|strong|ensuremath)\*?\s*\{([^{}]*)\}"
)
_DELIMITERS = re.compile(r"\\[()\[\]]|\$")
_SPACING = r"\\[,;: ]|\\(?:q?quad|(?:thin|med|thick)space|enspace)(?![A-Za-z])|\\hspace\*?\{[^{}]*\}|\s"
_BLANK_START = re.compile(rf"(?:{_SPACING})+")
_BLANK_END = re.compile(rf"(?:{_SPACING}|~|\\$)+$")
_BLANK_ENDINGS = (" ", "\n", "\t", "~", "\\", "\\,", "\\;", "\\:", "quad", "space")
_LEAD_IN = re.compile(r"(?:the\s+)?(?:(?:final|correct)\s+)?answer\s*(?:is\b\s*[:=]?|[:=])\s*", re.IGNORECASE)
_END_MARKS = (".", "。", ";", ",")
_UNIT_TEXT = re.compile(
    r"(?<=[\d}])(?:\s|~|\\[,;: ])*\\(?:text|textrm|mathrm|mbox|operatorname|textit|rm)\s*\{"
    r"([^{}\d]*)(?:\^\s*(?:[23]|\{[23]\}))?\}\s*(?:\^\s*\{?[23]\}?)?\s*\.?$"
)
_UNIT_WORDS = re.compile(r"(?<=\d)\s*((?:[A-Za-z]{2,}\.?)(?:\s+[A-Za-z]{2,}){0,3})(?:\^\s*\{?[23]\}?)?$")
_CHANGE = re.compile(
    r"[√∞½¼¾⅓⅔±×÷+*=<>≈≠α-λν-ψ]|^\s*(?:[!²³]|(?:squared|cubed)\b)|\b(?:st|nd|rd|th)\s+(?:roots?|powers?)\b"
)
_DEGREES = re.compile(r"(?:\^\s*\{?\s*\\circ\s*\}?|°|\\degree)\s*$")
_RELATION = re.compile(
    r"[<>≤≥≠≈≡±!~]=?|\\(?:neq?|leq?|geq?|lt|gt|approx|equiv|sim|simeq|cong|to|pm|mp|in|notin|not|mid)(?![A-Za-z])"
)
_LIST_COMMA = re.compile(r",(?!\d{3}(?!\d))|;|\b(?:or|and)\b")

_USUAL = re.compile(r"(?:[A-Za-z](?:[+-][A-Za-z]){0,4} ?= ?)?([+-]?[0-9]+)")
_PLAIN = re.compile(r"[+-]?\d+(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,|\{,\}|\\[,;: ]|~|'| )+\d{3})+(?:\.0*)?")
_SCIENTIFIC = re.compile(
    r"([+-]?\d+(?:\.\d+)?)\s*(?:(?:\\times|\\cdot|[×·*x])\s*10\s*\^\s*(?:\{\s*([+-]?\d+)\s*\}|([+-]?\d))|[eE]([+-]?\d+))"
)
_NOT_DIGIT = re.compile(r"[^\d+-]")
MAX_INTEGER_LENGTH = 120  # characters of a spelled integer; far below the interpreter's int(str) limit
MAX_UNWRAPPED = 600  # characters; what stands behind is option text at most
_MAX_EXPONENT = 30


def plain_unicode(text: str) -> str:
    """Full-width forms, digits of any script, minus signs and odd spaces as ASCII. Superscripts stay."""
    if text.isascii():
        return text
    text = text.translate(_TABLE)
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text)


def unwrap(text: str) -> str:
    r"""`text` without math delimiters, sizes, fonts and outer braces: `\textbf{(C)}` becomes `(C)`."""
    text = _DECORATION.sub("", _DELIMITERS.sub(" ", plain_unicode(text[:MAX_UNWRAPPED])))
    for _ in range(4):
        unwrapped = _WRAPPER.sub(r"\1", text)
        if unwrapped == text:
            break
        text = unwrapped
    text = text.strip()
    while len(text) > 1 and text[0] == "{" and text[-1] == "}" and _encloses(text):
        text = text[1:-1].strip()
    return text.strip("* \t\n")


def _encloses(text: str) -> bool:
    """Whether the bracket that opens `text` is the one that closes it."""
    opening, closing = text[0], text[-1]
    depth = 0
    for position, character in enumerate(text):
        if character == opening:
            depth += 1
        elif character == closing:
            depth -= 1
            if depth == 0:
                return position == len(text) - 1
    return False


def strip_units(text: str) -> str:
    r"""`text` without a unit after its number: `42\text{ cm}^2`, `42 square units`, `42^\circ`."""
    text = _DEGREES.sub("", text.strip())
    for pattern in (_UNIT_TEXT, _UNIT_WORDS):
        match = pattern.search(text)
        if match is None or changes_number(words := match[1].lower()):
            continue
        if NOT_UNITS.isdisjoint(re.findall(r"[a-z]+", words)):
            text = text[: match.start()].strip()
    return text


def changes_number(words: str) -> bool:
    """Whether text behind a number changes it by a symbol or as a whole: "squared", "nd root", "½"."""
    return _CHANGE.search(words) is not None


def read_integer(text: str) -> int | None:
    r"""The integer that `text` spells, or None.

    Spellings: `042`, `1,024`, `1{,}024`, `1\,024`, full-width digits, `42.0`, `1.2\times10^1`, `5e2`, a unit
    behind, `m+n = 293` (what stands after the last `=`). An expression, a list, a relation other than `=` and
    a decimal with a fraction are none.
    """
    text = text.strip()
    if len(text) > MAX_INTEGER_LENGTH:
        return None
    plain = _USUAL.fullmatch(text)
    if plain is not None:
        return int(plain[1])
    text = plain_unicode(text)
    if "\\" not in text and "$" not in text and (value := _literal(text)) is not None:
        return value
    text = strip_units(_without_blanks(_DECORATION.sub("", _DELIMITERS.sub(" ", text.replace("\\$", "")))))
    text = _without_blanks(strip_units(_without_blanks(unwrap(_without_blanks(text)))))
    if text[-1:] in _END_MARKS and not text.endswith(".."):
        text = _without_blanks(text[:-1])
    lead = _LEAD_IN.match(text)
    if lead is not None:
        text = _without_blanks(unwrap(text[lead.end() :]))
    if "=" in text:
        left, _, text = text.rpartition("=")
        if _RELATION.search(left + "=") or _LIST_COMMA.search(left):
            return None
        text = unwrap(_without_blanks(text))
        value = _literal(text)
        sides = [side.strip() for side in left.split("=")]
        if any(_NUMBER.fullmatch(side) and _literal(side) != value for side in sides):
            return None  # "43 = 42" says nothing
    while len(text) > 1 and text[0] == "(" and text[-1] == ")" and _encloses(text):
        text = text[1:-1].strip()
    return _literal(text)


def _without_blanks(text: str) -> str:
    """`text` without spaces and spacing commands at its ends. A leading `~` may mean "about" and stays."""
    if text[:1] in (" ", "\\", "\n", "\t"):
        blank = _BLANK_START.match(text)
        text = text[blank.end() :] if blank else text
    return _BLANK_END.sub("", text) if text.endswith(_BLANK_ENDINGS) or "hspace" in text else text


def _literal(text: str) -> int | None:
    if _PLAIN.fullmatch(text):
        return int(text.partition(".")[0])
    if _GROUPED.fullmatch(text):
        return int(_NOT_DIGIT.sub("", text.partition(".")[0]))
    match = _SCIENTIFIC.fullmatch(text)
    if match is None:
        return None
    exponent = int(match[2] or match[3] or match[4])
    whole, _, fraction = match[1].partition(".")
    shift = exponent - len(fraction)
    if abs(exponent) > _MAX_EXPONENT:
        return None
    mantissa = int(whole + fraction)
    if shift >= 0:
        return mantissa * 10**shift
    value, rest = divmod(mantissa, 10**-shift)
    return value if rest == 0 else None
