"""GPQA: one of the letters A to D. A boxed letter comes first, then the last statement that names an option.

The text of an option without its letter is no answer: the grader does not know the options (their order is
permuted for each sample). An article ("a reliable answer") and the first letter of a word are no letters.
"""

from __future__ import annotations

import re

from vcppo.errors import DataError
from vcppo.grading.extract import Extracted, extract_box, extract_statement, final_part
from vcppo.grading.result import CUT_REASONS, Grade, shown
from vcppo.grading.rivals import is_denied_after, is_enumeration_gap
from vcppo.grading.spelling import MAX_UNWRAPPED, unwrap

_PREFIX = re.compile(
    r"\s*(?:(?:the\s+)?(?:correct\s+|right\s+|best\s+)?(?:final\s+)?(?:options?|choices?|answers?|letter)(?![A-Za-z])"
    r"\s*(?:is|are|:|=)?\s*)+",
    re.IGNORECASE,
)
_LINK = r"because|since|as|is|which|for|due|with|from|by|given|but|rather than"
_LETTER = re.compile(
    r"[\"'“‘`<]?\s*(?:"
    r"[(\[]\s*([A-Za-z])\s*[)\]]"  # (C) anything
    r"|([A-Za-z])(?=\s*$|\s*[).:,;!\]>]|[\"'”’`](?!\w)|\s+[-–—]\s|\s*[/&+]|\s*\(|\s*\n"  # C) anything
    rf"|\s+(?:{_LINK}|or|and)\b)"  # C because
    r")"
)
_SECOND = re.compile(
    r"[\"'”’`>]?[\s,/&+()\].;:]*\b(?:or|and)\b(?:\s+(?:possibly|maybe|perhaps|option))?[\s(\[]*([A-Za-z])(?![A-Za-z])"
    r"|[\"'”’`]?[\s)]*[,/&+;][\s(\[]*([A-Z])(?![A-Za-z'’])"
    r"|\s*[(\[]\s*([A-Z])\s*[)\]]"
)
_LATER = re.compile(r"\b(?:or|and)\s*(?:option\s*)?[(\[]\s*([A-D])\s*[)\]]|\b(?:or|and)\s+([A-D])\)")
_SEVERAL = re.compile(r"[A-D]{2,4}\s*[.!]?\s*|(?:[(\[]?[A-D][)\]]?[\s,/&+;]*){2,4}[.!]?\s*")
_NAMED = r"\(?(?-i:[A-D])\)?(?![A-Za-z])"
_CHOICE = re.compile(
    r"(?<![A-Za-z])(?:(?:I|we) (?:would |will |shall )?|I['’](?:d|ll) |let['’]?s |so |therefore,? )"
    r"(?:choose|pick|select|go with|opt for) (?P<pick>[^\n]{1,60})"
    r"|(?<![A-Za-z])(?:correct|right|best|final|my) (?:option|choice|letter)"
    r"(?: (?:is|must be|should be|would be|will be) ?:?|\*{0,2}:) {0,3}(?P<best>[^\n]{1,60})"
    rf"|(?<![A-Za-z])(?:option|choice) (?P<named>{_NAMED}) is (?:therefore |thus )?(?:the )?"
    r"(?:correct|right|best|answer)(?![A-Za-z?])(?! (?:answer|option|choice)\?)"
    rf"|(?:^|[.,:;!]|\b(?:so|thus|hence|therefore|that|clearly))[ \t*_]*"
    rf"(?P<declared>(?:{_NAMED}(?:,|/|,? (?:or|and)) ?){{0,3}}{_NAMED})[*_]{{0,2}} is (?:therefore |thus )?"
    r"(?:the (?:(?:correct|right|best|final) )?(?:answer|option|choice)(?![A-Za-z?])"
    r"|(?P<bare>(?:correct|right)(?=[ \t*_]*(?:[.!]|$))))"
    r"|^[ \t>#*_]*(?:(?:final|correct) )?answer[ \t]*"
    r"(?P<after>\((?-i:[A-D])\)|(?<=[ \t])(?-i:[A-D]))"
    r"(?=[.!]?[ \t*_]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_UNSAID = re.compile(
    r"\b(?:not|if|whether|suppose|assum\w+|unless|neither|why|doubt|think|deny|would)\b[^.\n]*$", re.I
)
_BLANK = re.compile(r"\*\*|__|\\(?:[,;: ]|q?quad(?![A-Za-z]))|~")
_EITHER = re.compile(r"\s*(?:either|both)\b", re.IGNORECASE)


def canonical_gold(gold: str) -> str:
    """The upper-case letter A-D of `gold`. Raises DataError for anything else."""
    letter = unwrap(gold).strip("()[]. ").upper()
    if letter not in ("A", "B", "C", "D"):
        raise DataError(
            f"GPQA gold {shown(repr(gold))} is not one letter A, B, C or D; correct or drop the row"
        )
    return letter


def grade(response: str, gold: str, finish_reason: str = "stop") -> Grade:
    """Grade against a gold letter. Raises DataError when the gold is none."""
    wanted = canonical_gold(gold)
    text = final_part(response)
    letter, others, found = _decide(text) if text is not None else (None, set(), None)
    cut = finish_reason in CUT_REASONS
    if cut and (found is None or found.open_ended):
        return Grade("truncated", None, f"cut ({finish_reason}) before a complete answer")
    if found is None:
        return Grade(
            "no_answer", None, "unclosed <think>" if text is None else "no box and no statement with a letter"
        )
    if others:
        return Grade("wrong", shown(found.text), "several options offered")
    if letter is None:
        if not unwrap(found.text).strip("{}$ \\,.()"):
            return Grade("no_answer", None, "empty box" if found.boxed else "empty answer statement")
        return Grade("wrong" if found.boxed else "no_answer", shown(found.text), "names no option")
    return Grade(
        "right" if letter == wanted else "wrong", letter, "" if letter in "ABCD" else "no such option"
    )


def _decide(text: str) -> tuple[str | None, set[str], Extracted | None]:
    """The letter decided for, rival letters, and where that was read."""
    box = extract_box(text)
    if box is not None:
        letter, others = _read(box)
        if letter or others or not unwrap(box.text):
            return letter, others, box
    start = (
        box.end if box else 0
    )  # a box that holds no letter (a computed value) leaves the word to what follows
    statement = extract_statement(text, _looks_like_letter, start)
    choice = _last_choice(text, start)
    if choice and (statement is None or choice.end >= statement.end or _read(statement)[0] is None):
        statement = choice
    if statement is None:
        return None, set(), box
    letter, others = _read(statement)
    return letter, others, statement if letter or others or box is None else box


def _last_choice(text: str, start: int) -> Extracted | None:
    """The last sentence that decides for an option, with those right before it that decide for another."""
    run: list[tuple[str, int, str]] = []
    for match in _CHOICE.finditer(text, start):
        kind = str(match.lastgroup if match.lastgroup != "bare" else "declared")
        value, end = match[kind], match.end()
        if not _looks_like_letter(value) or is_denied_after(text, match.end(kind)):
            continue
        lead = text[max(start, match.start() - 60) : match.start(kind)]
        if kind in ("declared", "named") and _UNSAID.search(lead):
            continue
        if run and not is_enumeration_gap(text[run[-1][1] : match.start()]):
            run = []
        run.append((value, end, kind))
    if not run:
        return None
    value, end, kind = run[-1]
    return Extracted(
        value,
        others=tuple(dict.fromkeys(other for other, _, _ in run[:-1])),
        open_ended=end >= len(text.rstrip()) and kind in ("pick", "best", "after"),
        end=end,
    )


def _looks_like_letter(value: str) -> bool:
    letter, others = read_letter(value)
    return letter is not None or bool(others)


def _read(found: Extracted) -> tuple[str | None, set[str]]:
    letter, others = read_letter(found.text)
    for rival in found.others + found.doubts:
        other, more = read_letter(rival)
        others |= more | ({other} if other and other != letter else set())
    return letter, others


def read_letter(text: str) -> tuple[str | None, set[str]]:
    """The option letter that `text` begins with, and other letters that it offers beside it."""
    text = unwrap(_BLANK.sub(" ", text[:MAX_UNWRAPPED]))
    either = _EITHER.match(text)
    text = text[either.end() :] if either else text
    prefix = _PREFIX.match(text)
    body = text[prefix.end() :] if prefix else text
    if _SEVERAL.fullmatch(body):
        letters = set(re.findall("[A-D]", body))
        return (letters.pop(), set()) if len(letters) == 1 else (None, letters)
    match = _LETTER.match(body)
    if match is None:
        return None, set()
    letter = (match[1] or match[2]).upper()
    rest = body[match.end() :]
    others = {next(filter(None, found)).upper() for found in _LATER.findall(rest)}
    second = _SECOND.match(rest)
    if second:
        others.add(next(filter(None, second.groups())).upper())
    others = {other for other in others if other != letter and other in "ABCDE"}
    if either and not others:  # "either A" leaves the rest unsaid
        return None, {letter}
    return letter, others
