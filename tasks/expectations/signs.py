"""Short words that say what is wrong with a problem's text, or that nothing is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks.sources.catalogue import DAPO_TEMPLATES

NONE = "none"

_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")
_ANSWER = re.compile(r"\\boxed|####\s*\S|\bAnswer\s*:\s*\S")
ANSWER_HINTS = ("boxed", "###", "Answer")
"""Every mark of an answer holds one of these: plain substrings are found ten times faster."""
FOREIGN_PARTS = tuple(
    part.strip() for template in DAPO_TEMPLATES for part in (template.prefix, template.suffix)
)


def language(text: str) -> str:
    """By script alone: `zh` if a fifth of the letters are Han, `en` if most are Latin or there are none,
    else `other`."""
    if text.isascii():
        return "en"
    letters = len(_LETTER.findall(text))
    if 5 * len(_HAN.findall(text)) >= letters > 0:
        return "zh"
    return "en" if 2 * len(_LATIN.findall(text)) >= letters else "other"


def answer_inside(text: str, traces: Sequence[str]) -> str:
    """`boxed`-like marks of an answer in a problem's text, or `solution` if it holds one of its traces;
    else `none`."""
    found = _ANSWER.search(text) if any(hint in text for hint in ANSWER_HINTS) else None
    if found is not None:
        return found.group(0)
    return "solution" if any(len(trace) >= 40 and trace in text for trace in traces) else NONE


def template_state(content: str, problem: str, template: str) -> str:
    """`once` if the user message is the template around the problem, and neither it nor a known foreign one
    repeats."""
    if template.replace("{problem}", problem) != content:
        return "not this template"
    for part in template.split("{problem}"):
        if part.strip() and content.count(part.strip()) != 1:
            return "repeated"
    if any(part in problem for part in FOREIGN_PARTS):
        return "another template inside"
    return "once"


def option_state(options: Sequence[str], grader: str) -> str:
    """`four distinct` options of a multiple-choice problem, `no choice` for the others."""
    if grader != "gpqa":
        return "no choice" if not options else f"{len(options)} options, graded as {grader}"
    distinct = len({" ".join(option.split()).casefold() for option in options})
    return (
        "four distinct" if len(options) == distinct == 4 else f"{len(options)} options, {distinct} distinct"
    )
