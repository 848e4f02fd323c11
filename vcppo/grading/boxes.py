r"""Boxes (`\boxed`, `\fbox`, `\framebox`, also without braces) of a text, found in one linear pass.

The last complete box is the answer. Boxes that stand side by side, with nothing but punctuation, labels or
words of doubt between them, are one enumeration, not a correction.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vcppo.grading.rivals import is_denied_after, is_denied_before, is_enumeration_gap, is_shared_out

_BOX_START = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])")
_PLAIN_BOX = re.compile(r"\\boxed\{([^{}\\]*)\}")
_COMMANDS = (r"\boxed", r"\fbox", r"\framebox")
_TOKEN = re.compile(r"\\(?:boxed|fbox|framebox)(?:\[[^\]\n]{0,40}\])?\s*\{|\\[^A-Za-z]|[{}]")
_BARE = re.compile(
    r"\\(?:boxed|fbox|framebox)(?![A-Za-z])[ \t]*((?:\\[A-Za-z]+|\{[^{}\n]{0,80}\}|[^\s{}$\\])+)"
)
_MAX_RUN = 200  # neighbouring boxes that are looked at
_NUMERIC = frozenset("0123456789.")


class Box(NamedTuple):
    """One complete top-level box: `text` inside it (nested boxes unwrapped), from `start` to `end`."""

    text: str
    start: int
    end: int
    inner_values: tuple[str, ...] = ()  # what the boxes inside this one hold, when there are several
    braced: bool = True


def find_boxes(text: str) -> list[Box]:
    """Every complete top-level box of `text`, in order. A box that is never closed is none."""
    place = text.find("box")
    only = _PLAIN_BOX.match(text, max(0, place - 1))
    if only is not None and text.find("box", only.end()) < 0:  # the usual case, without the pass below
        return [Box(_trimmed(only[1]), only.start(), only.end())]
    starts = [start for command in _COMMANDS if (start := text.find(command)) >= 0]
    if not starts:
        return []
    first = min(starts)
    closed: list[tuple[int, int, int]] = []  # (start of the command, start of the inside, end of the inside)
    stack: list[tuple[int, int] | None] = []  # None for a plain brace
    for token in _TOKEN.finditer(text, first):
        piece = token.group()
        if piece == "{":
            stack.append(None)
        elif piece == "}":
            if stack and (opened := stack.pop()) is not None:
                closed.append((opened[0], opened[1], token.start()))
        elif piece.endswith("{") and len(piece) > 2:
            stack.append((token.start(), token.end()))
    boxes = _top_level(text, closed)
    taken = [(box.start, box.end) for box in boxes]
    bare = [
        Box(match.group(1).rstrip(".,;:!?"), match.start(), match.end(), braced=False)
        for match in _BARE.finditer(text, first)
        if match.group(1).strip(".,;:!?)") and not match.group(1).startswith("{")
    ]
    if bare:
        position = 0
        for box in bare:
            while position < len(taken) and taken[position][1] < box.end:
                position += 1
            if position == len(taken) or box.start < taken[position][0]:
                boxes.append(box)
        boxes.sort(key=lambda box: box.start)
    return boxes


def _top_level(text: str, closed: list[tuple[int, int, int]]) -> list[Box]:
    """Boxes inside no other complete box. `closed` is in closing order, inner boxes before outer ones."""
    tops: list[tuple[int, int, int, list[tuple[int, int, int]]]] = []
    for start, inside, end in closed:
        inner: list[tuple[int, int, int]] = []
        while tops and tops[-1][0] > start:
            top = tops.pop()
            inner[:0] = top[3] or [top[:3]]
        tops.append((start, inside, end, inner))
    boxes = []
    for start, inside, end, inner in tops:
        pieces, position = [], inside
        for inner_start, inner_inside, inner_end in inner:
            pieces += [text[position:inner_start], text[inner_inside:inner_end]]
            position = inner_end + 1
        pieces.append(text[position:end])
        pieces = [piece for piece in pieces if piece]
        values = tuple(text[a:b].strip() for _, a, b in inner) if len(inner) > 1 else ()
        content = _BOX_START.sub("", _joined(pieces)) if inner else text[inside:end]
        boxes.append(Box(_trimmed(content), start, end + 1, values))
    return boxes


def _joined(pieces: list[str]) -> str:
    """Texts around and inside nested boxes as one. Digits on both sides of a border stay two numbers."""
    joined = ""
    for piece in pieces:
        border = joined[-1:] in _NUMERIC and piece[:1] in _NUMERIC
        joined += (r"\quad " if joined and border else "") + piece
    return joined


def _trimmed(content: str) -> str:
    r"""`content` without blanks at its ends, and without what is left of a final `\ `."""
    content = content.strip()
    return content.rstrip("\\ ") if content.endswith("\\") else content


def last_run(text: str, boxes: list[Box]) -> list[Box]:
    """The last box that is not denied, after the neighbouring ones that are its rivals; empty without any."""
    run: list[Box] = []
    for box in reversed(boxes):
        if is_denied_after(text, box.end) or is_denied_before(text, box.start):
            continue
        if run and not (
            is_enumeration_gap(text[box.end : run[0].start])
            or (len(run) == 1 and is_shared_out(text, run[0].end))
        ):
            break
        run.insert(0, box)
        if len(run) == _MAX_RUN:
            break
    return run
