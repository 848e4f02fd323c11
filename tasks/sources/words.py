"""How two problems are compared: exactly, or by their words, numbers and operators."""

from __future__ import annotations

import re
import unicodedata

# every branch begins with a fixed character: the search then skips all others quickly
_LAYOUT = (
    r"\$|\{|\}"
    r"|\\(?:(?:left|right|big|Big|bigg|Bigg|displaystyle|textstyle|limits|quad|qquad|hspace\{[^}]*\}"
    r"|mathcal|mathbb|mathbf|mathrm|mathit|text|textbf|textit|emph|operatorname)(?![A-Za-z])"
    r"|[,;:! \[\]()])"
)
_LATEX_LAYOUT = re.compile(rf"{_LAYOUT}|\[asy\].*?\[/asy\]", re.DOTALL)
_LAYOUT_BUT_FIGURES = re.compile(_LAYOUT)
_NUMBER = r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?"
_OPERATOR = r"[-+*/^_=<>!|%()\[\]]"
_ASCII_WORD = re.compile(rf"[a-z]+|{_NUMBER}|{_OPERATOR}")
"""What `_WORD` finds in lower-case ASCII text, at half the time."""
_WORD = re.compile(
    r"\d+(?:,\d{3})*(?:\.\d+)?"  # numbers
    r"|[\u3040-\u30ff\u3400-\u9fff]"  # scripts without spaces: each character is a word
    r"|[^\W\d_]+"  # words, and LaTeX commands without their backslash
    rf"|{_OPERATOR}"  # operators and signs
    r"|[^\x00-\x7f\w\s]"  # ≤, √, ° and the like
)
_SIGN = re.compile(rf"{_NUMBER}|\.[0-9]+|[^\W\d_]+|\d|_|[^\w\s.,:;?\"`“”]")
"""What `layout_key` keeps, letters as they are written."""
_ARITHMETIC = frozenset("-+*/^=<>!%")


def comparison_key(text: str) -> str:
    """What two prompts are the same by: composed characters, single spaces. Letters, operators, signs
    count."""
    # printable ASCII has no white space but single characters of it
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip(" ")
    return " ".join(unicodedata.normalize("NFC", text).split())


def layout_key(text: str) -> str:
    """The same for two prompts that differ only in LaTeX layout, white space and punctuation: one of two
    golds for them must be wrong. Letters' case, operators, signs, primes and drawings count."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
    if "\\" in text or "$" in text or "{" in text:
        text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
        text = _LAYOUT_BUT_FIGURES.sub(" ", text)
    found = _SIGN.findall(text)
    return " ".join([sign.replace(",", "") for sign in found] if "," in text else found)


def words(text: str) -> list[str]:
    """Words, numbers and operators of a problem, in order; case, LaTeX layout and punctuation are left
    out."""
    is_ascii = text.isascii()
    if not is_ascii:
        text = unicodedata.normalize("NFC", text)
    if "\\" in text or "$" in text or "[asy]" in text:
        text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
        text = _LATEX_LAYOUT.sub(" ", text)
    found = _ASCII_WORD.findall(text.lower()) if is_ascii else _WORD.findall(text.casefold())
    return [word.replace(",", "") for word in found] if "," in text else found


def shingles(sequence: list[str], size: int) -> set[str]:
    """All runs of `size` words; the whole, if it is shorter than that."""
    if len(sequence) <= size:
        return {" ".join(sequence)}
    return {" ".join(sequence[i : i + size]) for i in range(len(sequence) - size + 1)}


def arithmetic(sequence: list[str]) -> tuple[str, ...]:
    """Numbers and operators, sorted: problems that differ in one of them are different problems."""
    return tuple(sorted(word for word in sequence if word[0].isdigit() or word in _ARITHMETIC))
