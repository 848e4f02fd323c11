"""One problem as an adapter reads it from its source, before anything is cleaned."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tasks.sources.multiple_choice import render


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with its answer, as the source gives them."""

    id: str
    """`<source name>/<id in the source, or hash of the problem's text>`: the same every night."""
    text: str
    answer: str
    """Of a multiple-choice problem: the letter of the right option."""
    where: str
    """Where it was read (file and row), for messages."""
    traces: tuple[str, ...] = ()
    """Worked solutions: responses to imitate in the SFT stage."""
    options: tuple[str, ...] = ()
    """Of a multiple-choice problem: its options in the order in which the prepared prompt shows them."""

    @property
    def shown(self) -> str:
        """The text that a prompt shows."""
        return render(self.text, self.options) if self.options else self.text

    @property
    def compared(self) -> str:
        """The text that makes the problem another one: the order of its options does not."""
        return "\n".join([self.text, *sorted(self.options)]) if self.options else self.text


def problem_id(source: str, text: str, given: str | None = None) -> str:
    """The stable id of a problem. given: its id within the source; None derives one from the text."""
    return f"{source}/{given or hashlib.sha256(text.encode()).hexdigest()[:16]}"


def order_key(id_: str) -> str:
    """Sorts problems wherever 'the first by id hash' are taken: an order that no source chose."""
    return hashlib.sha256(id_.encode()).hexdigest()
