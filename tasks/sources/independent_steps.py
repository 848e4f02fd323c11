"""The second synthetic task: independent steps with chance slips, where decoupled GAE pays.

The problem is a number that only tells the problems apart. The response does `num_steps` steps of four
characters (vcppo/grading/steps.py): a letter, two digits of its own choice, the larger of them. It is right
if at most `max_wrong` steps are wrong:

    prompt     207915
    response   a377b122c06?...

In a fixed set of `uncertain_cells` of the 100 pairs of digits the SFT traces leave the step open with
probability `slip_rate` (or write a wrong digit, as `slips` says), in the others never. So the policy slips by
chance, anywhere: only a value function that has learned to see a slip can tell which of the many steps was to
blame, while the outcome blames or praises them all. A share of the traces quits early, which is always wrong.

Why the larger digit, and not the sum modulo 10: of a sum's last digit neither operand alone tells anything,
and a tiny model stands on that plateau for long.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tasks.sources.draws import below, distinct_problems, random_for
from tasks.sources.problem import Problem, problem_id
from vcppo.config.sources import IndependentStepsSource
from vcppo.grading.steps import write_gold, write_step

Cell = tuple[int, int]
"""The two digits of a step."""


def read(source: IndependentStepsSource, seed: int) -> Iterator[Problem]:
    """`num_problems` different problems, a function of the seed and the source's values.

    Raises DataError if there are not so many different problems.
    """
    uncertain = uncertain_cells(source, seed)

    def make(draw: int) -> Problem:
        generator = random_for(source, seed, f"problem {draw}")
        text = "".join(str(below(generator, 10)) for _ in range(source.prompt_digits))
        return Problem(
            id=problem_id(source.name, text),
            text=text,
            answer=write_gold(source.num_steps, source.max_wrong),
            where=f"source {source.name}, draw {draw}",
            traces=tuple(
                draw_trace(source, uncertain, generator) for _ in range(source.sft_traces_per_problem)
            ),
        )

    return distinct_problems(source, source.prompt_digits, "prompt_digits", make)


def uncertain_cells(source: IndependentStepsSource, seed: int) -> frozenset[Cell]:
    """The pairs of digits in which the traces slip."""
    generator = random_for(source, seed, "uncertain cells")
    cells = [(first, second) for first in range(10) for second in range(10)]
    return frozenset(cells.pop(below(generator, len(cells))) for _ in range(source.uncertain_cells))


def draw_trace(source: IndependentStepsSource, uncertain: frozenset[Cell], generator: random.Random) -> str:
    """A response to imitate, slips included."""
    quits = generator.random() < source.early_stop_fraction
    # a trace that quits has done at least one step: an empty response teaches nothing
    num_steps = 1 + below(generator, source.num_steps - 1) if quits else source.num_steps
    return "".join(_draw_step(place, source, uncertain, generator) for place in range(num_steps))


def _draw_step(
    place: int, source: IndependentStepsSource, uncertain: frozenset[Cell], generator: random.Random
) -> str:
    first, second = below(generator, 10), below(generator, 10)
    result: int | None = max(first, second)
    if (first, second) in uncertain and generator.random() < source.slip_rate:
        # one of the nine other digits, each as likely
        result = None if source.slips == "left_open" else (max(first, second) + 1 + below(generator, 9)) % 10
    return write_step(place, first, second, result)
