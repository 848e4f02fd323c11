"""What the generators share: problems that differ, from seeded draws that every Python version repeats."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator

from tasks.sources.problem import Problem
from vcppo.config.sources import GeneratedSource
from vcppo.errors import DataError


def distinct_problems(
    source: GeneratedSource, num_digits: int, digits_key: str, make: Callable[[int], Problem]
) -> Iterator[Problem]:
    """`num_problems` problems of different text: those of draw 0, 1, ... that have not come before.

    num_digits: digits that make a problem's text; digits_key: the source's key that says how many. Raises
    DataError if they do not make so many different ones.
    """
    possible = 10**num_digits
    if source.num_problems > possible:
        raise DataError(
            f"source {source.name}: num_problems is {source.num_problems}, but {num_digits} digits make only "
            f"{possible} different problems; raise {digits_key} or lower num_problems"
        )
    seen: set[str] = set()
    draw = 0
    while len(seen) < source.num_problems:
        problem = make(draw)
        if problem.text not in seen:
            seen.add(problem.text)
            yield problem
        draw += 1


def random_for(source: GeneratedSource, seed: int, purpose: object) -> random.Random:
    """A generator for one purpose of a source; other purposes, sources and seeds get unrelated numbers."""
    digest = hashlib.sha256(f"{source.kind}\0{seed}\0{source.name}\0{purpose}".encode()).digest()
    return random.Random(int.from_bytes(digest))


def below(generator: random.Random, bound: int) -> int:
    """A whole number from 0 to `bound` - 1."""
    # of the generator's methods only random() promises the same numbers in every Python version
    return int(generator.random() * bound)
