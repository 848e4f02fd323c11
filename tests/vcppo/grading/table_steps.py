"""Independent steps: (response, gold, whether it is right)."""

from __future__ import annotations

_TWO = "2 steps, at most 0 wrong"
_THREE = "3 steps, at most 1 wrong"

STEPS: list[tuple[str, str, bool]] = [
    ("a377b122", _TWO, True),
    ("a991b000", "2 steps, at most 1 wrong", True),
    ("a999b000", _TWO, True),
    ("a991b000", _TWO, False),
    ("a377b122\n", _TWO, True),
    ("a377b122c066", _THREE, True),
    ("a371b122c066", _THREE, True),
    ("a371b122c067", _THREE, False),
    ("a377b12?c066", _THREE, True),
    ("a37?b12?c066", _THREE, False),
    ("a377b1?2c066", _THREE, True),
    ("a377c122c066", _THREE, True),
    ("a37b122c066", _THREE, False),
    ("a377b122c06", _THREE, False),
    ("a377b122", _THREE, False),
    ("a377", _TWO, False),
    ("a377b122c066", _TWO, False),
    ("a377a122", _TWO, False),
    ("b377a122", _TWO, False),
    ("A377B122", _TWO, False),
    ("a377 b122", _TWO, False),
    ("a377b12", _TWO, False),
    ("a377b1223", _TWO, False),
    ("a37=7b122", _TWO, False),
    ("a3771b122", _TWO, False),
    ("a３７７b122", _TWO, False),
    ("a377b122\\boxed{2 steps, at most 0 wrong}", _TWO, False),
    ("\\boxed{2 steps, at most 0 wrong}", _TWO, False),
    ("The steps: a377b122", _TWO, False),
    ("<think>a377b122", _TWO, False),
    ("", _TWO, False),
    ("0 wrong", _TWO, False),
]
