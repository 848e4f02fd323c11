"""Word lists of the grading rules."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# may stand before each of several answers: "Option 1:", "(b)", "Answer"
LABELS = _words(
    "option options candidate candidates choice possibility case try guess answer answers a b c d e f"
)

# joins answers into alternatives
DOUBTS = _words("or and either maybe perhaps possibly alternatively otherwise also else 或 或者 和")

# may stand beside a word of doubt: "or it could be"
FILLERS = _words("it is could might may be the value even can both")

# behind a number, changes or negates it, unlike the name of a unit
NOT_UNITS = _words(
    "or and not is isn was are to hundred hundreds thousand thousands million billion percent mod modulo "
    "if times plus minus over factorial squared cubed choose pi sqrt log ln sin cos exp dozen maybe "
    "perhaps possibly either wrong incorrect than least most about approximately roughly half halves "
    "third thirds between but except pair pairs"
)

# inside an answer, makes it no plain statement of a value
QUALIFIERS = _words(
    "not wrong incorrect approximately about roughly nearly almost less more than between except maybe "
    "perhaps possibly either hundred thousand million billion dozen percent"
)

# commands that Math-Verify understands; others it drops or reads as symbols
LATEX_COMMANDS = _words(
    "frac sqrt pi theta alpha beta gamma delta epsilon lambda mu nu rho sigma tau phi varphi omega infty "
    "cdot times div le leq ge geq lt gt pm mp cup cap in text mbox mathrm textrm operatorname begin end "
    "pmatrix bmatrix vmatrix matrix circ degree sin cos tan cot sec csc arcsin arccos arctan sinh cosh "
    "tanh log ln exp binom dbinom tbinom lfloor rfloor lceil rceil emptyset varnothing setminus mathbb "
    "cis to vert lvert rvert mid langle rangle overline quad over"
)

UNITS = {
    "cm": "centimeter", "mm": "millimeter", "m": "meter", "km": "kilometer", "in": "inch", "inches": "inch",
    "ft": "foot", "feet": "foot", "mi": "mile", "yd": "yard", "g": "gram", "kg": "kilogram",
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "hrs": "hour",
}  # fmt: skip
UNIT_NAMES = frozenset(UNITS.values()) | _words("day week month year degree radian dollar cent")
