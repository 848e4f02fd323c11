"""Multiple choice: every sample of a question shows its options in an order of its own, and the gold letter
follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tasks.sources.multiple_choice import LETTERS, letter_of, permuted, render
from vcppo.errors import DataError

if TYPE_CHECKING:
    from training.generation.prompts import Problem
    from training.generation.samples import Request


def shown_text(problem: Problem) -> str:
    """The part of a prompt that a template surrounds."""
    return render(problem.text, problem.options) if problem.options else problem.text


def asked(problem: Problem, template: str) -> Problem:
    """The problem with another user message. template: with `{problem}`."""
    *before, last = problem.messages
    content = template.replace("{problem}", shown_text(problem))
    return replace(problem, messages=(*before, {**last, "content": content}))


def requests_in_any_order(seed: int) -> Callable[[Problem, int], list[Request]]:
    """How the samples of a problem are asked for: with options, each in the order that the hash of (seed,
    problem id, sample) gives. Raises DataError for a prompt that does not show its options once."""

    def requests_of(problem: Problem, samples_per_problem: int) -> list[Request]:
        from training.generation.samples import plain_requests

        if not problem.options:
            return plain_requests(problem, samples_per_problem)
        return [_permuted_request(problem, sample, seed) for sample in range(samples_per_problem)]

    return requests_of


def _permuted_request(problem: Problem, sample: int, seed: int) -> Request:
    from training.generation.samples import Request

    order = permuted(f"{seed}\0{problem.id}", problem.options, sample)
    *before, last = problem.messages
    prepared = shown_text(problem)
    if last["content"].count(prepared) != 1:
        raise DataError(
            f"problem {problem.id}: its prompt does not show its options as prepared: "
            f"{last['content'][:80]!r}; run `dvc repro prepare` again"
        )
    content = last["content"].replace(prepared, render(problem.text, [problem.options[i] for i in order]))
    return Request(
        problem=problem,
        sample=sample,
        messages=(*before, {**last, "content": content}),
        gold=letter_of(order, LETTERS.index(problem.gold)),
        permutation=tuple(order),
    )
