r"""MATH: equality of two expressions by Math-Verify, exactly (no rounding). Runs in worker processes only.

Each side is handed over as one single box, for Math-Verify joins neighbouring ones
(`\boxed{180} … \boxed{204}` parses as 180204). Its own timeouts are off: they need SIGALRM and thus the main
thread; the pool kills a worker that takes too long.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from vcppo.errors import DataError

_DIGITS = 50  # decimal digits for the numeric double check


@functools.cache
def _math_verify() -> Any:
    import math_verify

    logging.getLogger("math_verify").setLevel(
        logging.ERROR
    )  # it warns that its timeouts are off, which is meant
    return math_verify


@functools.lru_cache(maxsize=256)
def read(latex: str) -> Any:
    """What Math-Verify reads in `latex`, decimals as exact rationals; None if it reads nothing."""
    math_verify = _math_verify()
    found = math_verify.parse(
        rf"\boxed{{{latex}}}",
        extraction_config=[math_verify.LatexExtractionConfig(boxed_match_priority=0)],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    return _with_imaginary_unit(_exact(found[0])) if found else None


def equivalent(answer: str, gold: str) -> bool:
    """Whether the two expressions are equal. Raises DataError when the gold cannot be read."""
    wanted = read(gold)
    if wanted is None:
        raise DataError(f"Math-Verify reads no expression in the gold {gold[:200]!r}")
    given = read(answer)
    if given is None:
        return False
    same = _math_verify().verify(
        wanted, given, float_rounding=_DIGITS // 2, numeric_precision=_DIGITS, timeout_seconds=None,
        allow_set_relation_comp=True,
    )  # fmt: skip
    return (same and _numerically_close(wanted, given)) or _same_union(wanted, given)


def _exact(expression: Any) -> Any:
    """`expression` with each decimal as the rational number it spells: 0.33 is 33/100, not roughly 1/3."""
    from sympy import Float, Rational

    if not hasattr(expression, "atoms"):
        return expression
    floats = {number: Rational(str(number)) for number in expression.atoms(Float)}
    return expression.xreplace(floats) if floats else expression


def _with_imaginary_unit(expression: Any) -> Any:
    """`expression` with `i` as the imaginary unit where it is the only letter (Math-Verify: a symbol)."""
    from sympy import I

    symbols: set[Any] = getattr(expression, "free_symbols", set())
    return (
        expression.xreplace(dict.fromkeys(symbols, I)) if {str(s) for s in symbols} == {"i"} else expression
    )


def _numerically_close(first: Any, second: Any) -> bool:
    """False where two numbers that Math-Verify calls equal differ in their leading digits."""
    if not (getattr(first, "is_number", False) and getattr(second, "is_number", False)):
        return True
    one, other = first.doit().evalf(_DIGITS), second.doit().evalf(_DIGITS)
    size = max(abs(one), abs(other))
    if not getattr(size, "is_comparable", False):
        return True
    if first.is_zero or second.is_zero:
        return bool(size < 10 ** (5 - _DIGITS))
    return bool(abs(one - other) <= size * 10 ** (5 - _DIGITS))


def _same_union(wanted: Any, given: Any) -> bool:
    r"""Whether `x<2 \text{ or } x>3`, which Math-Verify reads as a set of relations, is the gold's union."""
    from sympy import Set, Union
    from sympy.core.relational import Relational

    members = getattr(given, "args", ())
    if (
        not isinstance(wanted, Set)
        or not members
        or not all(isinstance(member, Relational) for member in members)
    ):
        return False
    if len(set().union(*(member.free_symbols for member in members))) != 1:
        return False
    return bool(Union(*(member.as_set() for member in members)) == wanted)
