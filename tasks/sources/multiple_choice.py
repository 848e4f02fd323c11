"""Four options in an order of their own for every sample, so that no letter is right more often than
another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

LETTERS = "ABCD"


def permuted(id_: str, options: Sequence[str], sample: int | None = None) -> list[int]:
    """The order in which the options are shown: a function of the record's id and the sample's number alone.

    sample: None gives the order of the prepared prompt. Returns indices into `options`.
    """
    keyed = [
        (hashlib.sha256(f"{id_}\0{'' if sample is None else sample}\0{option}".encode()).digest(), index)
        for index, option in enumerate(options)
    ]
    return [index for _, index in sorted(keyed)]


def render(question: str, options: Sequence[str]) -> str:
    """Question and lettered options as they stand in a prompt."""
    lettered = [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=True)]
    return "\n".join([question, "", *lettered])


def letter_of(order: Sequence[int], index: int) -> str:
    """The letter that the option with this index has in this order."""
    return LETTERS[list(order).index(index)]
