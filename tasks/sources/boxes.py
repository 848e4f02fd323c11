"""Answers inside worked solutions, and worked solutions as responses to imitate."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_CALCULATOR = re.compile(r"<<[^<>\n]*>>")
_GSM8K_ANSWER = re.compile(r"\n?####[ \t]*(\S[^\n]*?)\s*$")


def last_boxed(solution: str) -> str:
    r"""Content of the last `\boxed{...}` (or `\fbox{...}`, or `\boxed 4`) of a solution, braces balanced.

    Raises ValueError if there is none or it is cut.
    """
    starts = list(_BOX.finditer(solution))
    if not starts:
        raise ValueError("the solution has no \\boxed answer")
    rest = solution[starts[-1].end() :]
    if not rest.startswith("{"):
        bare = re.match(r"[^\s$.,]+", rest)
        if bare is None:
            raise ValueError("the solution's last \\boxed is empty")
        return bare.group(0)
    depth = 0
    for brace in _BRACE.finditer(rest):
        depth += {"{": 1, "}": -1}.get(brace.group(0), 0)
        if depth == 0:
            return rest[1 : brace.start()].strip()
    raise ValueError("the solution's last \\boxed is cut: its braces do not balance")


def gsm8k_answer(solution: str) -> str:
    """The answer behind the closing `####` of a GSM8K solution. Raises ValueError if there is none."""
    found = _GSM8K_ANSWER.search(solution)
    if found is None:
        raise ValueError("the solution does not end in `#### answer`")
    return found.group(1).replace(",", "")


def response_to_imitate(solution: str, gold: str) -> str:
    r"""A worked solution as an SFT response: ends in a box, because that is where the grader looks.

    GSM8K's calculator notes (`<<16-3=13>>`) and its closing `####` line are taken out; a solution that has
    a box of its own stays as it is otherwise.
    """
    text = _GSM8K_ANSWER.sub("", _CALCULATOR.sub("", solution)).rstrip()
    return text if _BOX.search(text) else f"{text}\n\\boxed{{{gold}}}"
