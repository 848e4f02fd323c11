"""Independent steps: (response, gold, whether it is right)."""

from __future__ import annotations

_TWO = "2 steps, at most 0 wrong"
_THREE = "3 steps, at most 1 wrong"

STEPS: list[tuple[str, str, bool]] = [
    ("a370b123", _TWO, True),
    ("a993b000", "2 steps, at most 1 wrong", True),
    ("a998b000", _TWO, True),
    ("a993b000", _TWO, False),
    ("a370b123\n", _TWO, True),
    ("a370b123c066", _THREE, True),
    ("a371b123c066", _THREE, True),
    ("a371b123c067", _THREE, False),
    ("a370b123", _THREE, False),
    ("a370", _TWO, False),
    ("a370b123c066", _TWO, False),
    ("a370a123", _TWO, False),
    ("b370a123", _TWO, False),
    ("A370B123", _TWO, False),
    ("a370 b123", _TWO, False),
    ("a370b12", _TWO, False),
    ("a370b1233", _TWO, False),
    ("a37=0b123", _TWO, False),
    ("a3710b123", _TWO, False),
    ("a３７０b123", _TWO, False),
    ("a370b123\\boxed{2 steps, at most 0 wrong}", _TWO, False),
    ("\\boxed{2 steps, at most 0 wrong}", _TWO, False),
    ("The steps: a370b123", _TWO, False),
    ("<think>a370b123", _TWO, False),
    ("", _TWO, False),
    ("0 wrong", _TWO, False),
]
