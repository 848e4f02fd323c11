"""Word lists of the grading rules."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# may stand before each of several answers: "Option 1:", "(b)", "Answer", "Second guess"
LABELS = _words(
    "option options candidate candidates choice possibility possibilities case part try guess guesses answer "
    "answers first second third fourth next other another alternative i will a b c d e f"
)

# join answers into one list, where nothing but labels and fillers stands beside them
JOINERS = _words("and also both 和")

# offer the answer behind them as an alternative to the one before
OFFERS = _words(
    "or either maybe perhaps possibly alternatively otherwise else versus vs could might may another other "
    "second third 或 或者"
)

# of these, the ones that begin a clause: "or, if order matters, it is"
CLAUSE_OFFERS = _words("or either maybe perhaps possibly alternatively otherwise 或 或者")

# make the answer beside them one of several cases
CONDITIONS = _words("if when assuming unless provided")

# may stand beside a word of doubt: "or it could be"
FILLERS = _words(
    "it is could might may be the that this value even can both but also equally well just as still instead "
    "simply equivalently too one"
)

# lead from earlier answers to a result
CONCLUSIONS = _words(
    "so hence thus therefore consequently finally final total sum product altogether overall gives give "
    "giving get gets getting yields yield yielding obtain obtains obtaining becomes conclude"
)

# take an earlier answer back
CORRECTIONS = _words(
    "wait no not actually correction corrected correcting mistake mistaken wrong error slip oops sorry "
    "rather recheck rechecking check checking checked again then"
)

# behind a number, multiply or divide it, or make another one of it
FACTORS = _words(
    "half halves third thirds fourth fourths fifth fifths sixth sixths seventh sevenths eighth eighths "
    "ninth ninths tenth tenths hundredth hundredths thousandth thousandths ten tens dozen dozens hundred "
    "hundreds thousand thousands million millions billion billions trillion trillions factorial pi tau sqrt "
    "i j e k x z"
)

# behind a number, changes or negates it, unlike the name of a unit
NOT_UNITS = FACTORS | _words(
    "or and not is isn was are to percent mod modulo if times plus minus over choose log ln "
    "sin cos exp maybe perhaps possibly either wrong incorrect than least most about approximately roughly "
    "between but except pair pairs"
)

# inside an answer, makes it no plain statement of a value
QUALIFIERS = _words(
    "not wrong incorrect approximately about roughly nearly almost less more than between except maybe "
    "perhaps possibly either or so thereabouts fewer if unless hundred thousand million billion dozen percent"
)

# commands that may be an argument without braces: \frac\pi2
GREEK = _words("pi theta alpha beta gamma delta lambda mu phi varphi sigma omega tau rho epsilon")

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
    "rad": "radian", "rads": "radian", "deg": "degree",
}  # fmt: skip
UNIT_NAMES = frozenset(UNITS.values()) | _words("day week month year degree radian dollar cent")
