r"""What stands around an answer: words that join it to another one, offer an alternative to it, or deny it.

Two answers are rivals where the text between them offers the second as an alternative ("or", "it could also
be", "if inclusive") or holds nothing but punctuation and labels. A text that leads from one to the other
("so", "wait", "a+b=") makes the later one the answer. A denied answer is neither an answer nor a rival.
"""

from __future__ import annotations

import re

from vcppo.grading.vocabulary import (
    CLAUSE_OFFERS,
    CONCLUSIONS,
    CONDITIONS,
    CORRECTIONS,
    FILLERS,
    JOINERS,
    LABELS,
    OFFERS,
)

_MAX_GAP = 120
_LATEX_WORD = re.compile(r"\\[A-Za-z]+|\\.")
_WRITTEN_OR = re.compile(r"\bas well as\b|\\(?:lor|vee)(?![A-Za-z])", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_PIECE = re.compile(r"[^\W\d_]+|[.,;:!?(\n—–]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NAME = re.compile(r"(?<=[\s,;&$(])[A-Za-z](?:_\{?\w\}?)?\s*=(?=[\s$]*$)")
_DERIVED = re.compile(r"[=+^→⇒]|\\(?:to|times|cdot|implies|Rightarrow|rightarrow)(?![A-Za-z])")

_LEAD = 60  # characters before an answer in which a denial of it is looked for
_NEGATED = re.compile(
    r"(?:(?<![A-Za-z])not|n['’]t|cannot|(?<![A-Za-z])(?:never|nor|rather than|instead of))[\s*_]+"
    r"(?:(?:be|equals?|to|really|simply|the|answer|is|value|option|possibly)\s+)*(?:\\[(\[]|[$*_(\s])*$",
    re.IGNORECASE,
)
_VERDICT = (
    r"\b(?:(?<!not )(?:wrong|incorrect|false|impossible|invalid|mistaken|tempting|inconsistent|excluded"
    r"|untrue|ruled out|fails?|failed)\b"
    r"|not(?=\s*(?:[.,;!)]|$)|\s+(?:correct|right|true|valid|possible|it|so|what|acceptable"
    r"|(?:the|an?)\s+(?:(?:correct|right|final|true|valid)\s+)?(?:answer|option|choice|solution|one|value))\b)"
    r"|no(?=\s*(?:[.,;!]|$)))"
)
_ELSEWHERE = (  # what follows is said of something else
    r"\b(?:(?:because|since|as|so|while|whereas|unlike|and|given|others?)\b"
    r"|but\s+(?:\(?[A-D]\b|the|option|\d))"
)
_DENIED = re.compile(
    r"[$)\]}*_\"'”’`\\\s]{0,12}(?:,?\s{0,4}(?:which|that|this|it)\s{1,4})?"
    rf"(?:(?:is|was|are|were)(?!\s+(?:the\s+)?(?:correct|right|best|only)\b)\b"
    r"|(?:seems?|looks?|appears?|would|might|may|could|can|does|cannot|fails)\b"
    r"|(?:isn|wasn|can|couldn)(?=['’]t\b))"
    rf"(?:(?!{_ELSEWHERE})[^.;:,()\n]|,(?=\s*(?:but|yet|though|however|although)\s)){{0,90}}?"
    rf"(?:{_VERDICT}|['’]t\s+(?:correct|right|true|be|it|the answer)\b|(?<=cannot)\s+be\b|(?<=fails)\b)",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(
    r"\b(?:but|however|though|although|if|unless|first|initially|guess|naive(?:ly)?|tempting)\b",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(
    r"[\s,;$)*_]{0,12}(?:otherwise|respectively|if not|in the other case)\b", re.IGNORECASE
)


_LONG_GAP = 2 * _MAX_GAP
_TRIGGERS = OFFERS | CONDITIONS
_BESIDE = JOINERS | FILLERS | LABELS
_UNWEIGHTY = FILLERS | LABELS | OFFERS


def is_enumeration_gap(gap: str) -> bool:
    """Whether the text between two answers joins them into one list instead of leading to the second."""
    if offer(gap) is not None:
        return True
    return _is_bare(gap) if len(gap) <= _MAX_GAP else not gap.strip()


def _is_bare(gap: str) -> bool:
    """Whether nothing but punctuation, names of unknowns, labels and "and" stands in `gap`."""
    rest = gap if "=" not in gap or "\n" in gap or "." in gap else _NAME.sub(" ", gap)
    words = set(_WORD.findall(_plain(rest).lower()))
    joined = words <= LABELS or (words <= _BESIDE and not words.isdisjoint(JOINERS))
    return joined and not _DERIVED.search(rest)


def _plain(gap: str) -> str:
    r"""`gap` with blanks for LaTeX commands, in the same places, and words for `\lor` and "as well as"."""
    if "\\" in gap or " well " in gap:
        gap = _WRITTEN_OR.sub(lambda match: "or".ljust(len(match.group())), gap)
        gap = _LATEX_WORD.sub(lambda match: " " * len(match.group()), gap)
    return gap


def offer(gap: str) -> int | None:
    """Where in `gap`, before an answer, words begin that offer the answer as an alternative; None without.

    Either nothing but fillers follows them ("or maybe it is"), or they begin a clause that neither concludes
    nor corrects ("or, with the empty set,", "if inclusive,").
    """
    begin = max(0, len(gap) - _LONG_GAP)
    gap = _plain(gap[begin:]).lower().rstrip(" .\t\n")
    if _TRIGGERS.isdisjoint(_WORD.findall(gap)):
        return None
    breaks = [match.end() for match in _SENTENCE.finditer(gap)]
    first = breaks[-1] if breaks else 0
    pieces = [(match.group(), begin + match.start()) for match in _PIECE.finditer(gap, first)]
    begin += first
    after: set[str] = set()
    only_fillers = True
    for place in range(len(pieces) - 1, -1, -1):
        word, start = pieces[place]
        if not word.isalpha():
            continue
        leads_clause = place == 0 or not pieces[place - 1][0].isalpha()
        if word in OFFERS and only_fillers:
            return start
        if leads_clause and word in CLAUSE_OFFERS and after.isdisjoint(CONCLUSIONS | CORRECTIONS):
            return start
        is_condition = word == "if" if place or begin else word in CONDITIONS
        if leads_clause and is_condition and after.isdisjoint(CONCLUSIONS):
            return start
        only_fillers = only_fillers and (len(word) == 1 or word in _UNWEIGHTY)
        after.add(word)
    return None


def is_shared_out(text: str, end: int) -> bool:
    """Whether the answer that ends at `end` is only one of the cases: "42 otherwise"."""
    return _OTHERWISE.match(text, end) is not None


def is_denied_after(text: str, end: int) -> bool:
    """Whether the answer that ends at `end` is taken back at once: "42 is wrong"."""
    return _DENIED.match(text, end) is not None


def is_denied_before(text: str, start: int) -> bool:
    """Whether the answer from `start` on stands behind a denial: "not 42"."""
    lead = text[max(0, start - _LEAD) : start]
    words = lead.lower()
    if (
        "no" in words
        or "n't" in words
        or "n’t" in words
        or "nev" in words
        or "than" in words
        or "ad of" in words
    ):
        return _NEGATED.search(lead) is not None
    return False


def is_qualified(sentence: str) -> bool:
    """Whether an answer's own sentence restricts it: "A as a first guess", "41 if order counts"."""
    return _QUALIFIED.search(sentence) is not None
