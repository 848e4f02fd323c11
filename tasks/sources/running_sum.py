"""The synthetic task: a running sum written out step by step, with an AIME-style answer.

A problem lists digits, each followed by its own letter; the response goes through the letters, repeats the
digit, writes the running sum modulo `modulus`, and ends with the answer in a box. With digits 3, 9, 4 and
modulus 5:

    prompt     3a9b4c
    response   a3=3b9=2c4=1\\boxed{1}

Four characters a step, so that twenty digits make a long chain of thought for a tiny model (89 characters).
The letter stands behind the digit in the prompt so that one attention layer can gather it there and the
next find it by the letter: with the letter in front a two-layer model learns the copying far more slowly.
Part of the SFT traces stop early at a step boundary and answer with the sum so far, right about once in
`modulus` times: quitting is possible, and bad (VC-PPO's length collapse in small).
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator

from tasks.sources.draws import below, distinct_problems, random_for
from tasks.sources.problem import Problem, problem_id
from vcppo.config.sources import SyntheticSource

LABELS = string.ascii_lowercase + string.ascii_uppercase
"""Names of the digits in order; longer problems start again from the first."""

ALPHABET = "".join(sorted(set(LABELS + string.digits + "=" + "\\boxed{}")))
"""Every character of a prompt or response of this task."""


def read(source: SyntheticSource, seed: int) -> Iterator[Problem]:
    """`num_problems` different problems, a function of the seed and the source's values.

    Raises DataError if there are not so many different problems.
    """

    def make(draw: int) -> Problem:
        generator = random_for(source, seed, draw)
        digits = [below(generator, 10) for _ in range(source.num_digits)]
        text = write_problem(digits)
        return Problem(
            id=problem_id(source.name, text),
            text=text,
            answer=str(sum(digits) % source.modulus),
            where=f"source {source.name}, draw {draw}",
            traces=tuple(
                _draw_trace(source, digits, generator) for _ in range(source.sft_traces_per_problem)
            ),
        )

    return distinct_problems(source, source.num_digits, "num_digits", make)


def write_problem(digits: list[int]) -> str:
    """The problem's text: a digit and its letter each."""
    return "".join(f"{digit}{_label(i)}" for i, digit in enumerate(digits))


def write_trace(digits: list[int], modulus: int, num_steps: int) -> str:
    """The response that does the first `num_steps` steps and answers with the sum so far."""
    state, steps = 0, []
    for i, digit in enumerate(digits[:num_steps]):
        state = (state + digit) % modulus
        steps.append(f"{_label(i)}{digit}={state}")
    return "".join(steps) + f"\\boxed{{{state}}}"


def _draw_trace(source: SyntheticSource, digits: list[int], generator: random.Random) -> str:
    stops = generator.random() < source.early_stop_fraction
    num_steps = below(generator, len(digits)) if stops else len(digits)
    return write_trace(digits, source.modulus, num_steps)


def _label(position: int) -> str:
    return LABELS[position % len(LABELS)]
