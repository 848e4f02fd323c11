"""From problems as read to problems fit for use: canonical golds, unique prompts with one gold each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tasks.sources.agreement import meant, one_value
from tasks.sources.figures import figure_marker
from tasks.sources.ledger import Ledger
from tasks.sources.problem import Problem, order_key
from tasks.sources.words import comparison_key
from vcppo.config.sources import Source
from vcppo.errors import DataError
from vcppo.grading import canonical_gold


@dataclass(frozen=True, slots=True)
class Gold:
    """A problem whose gold answer the grader can read."""

    problem: Problem
    gold: str
    """Canonical form of the answer."""


def clean(source: Source, problems: Iterable[Problem], ledger: Ledger) -> list[Gold]:
    """The source's different prompts, each with its canonical gold, in the order in which they first came.

    A repeated prompt with the same gold is kept once; one with several golds is dropped wholly, and listed;
    so is one that needs a figure, and one whose gold cannot be read if the source says so. Raises DataError
    naming the row if the grader cannot read a gold answer, or if one id belongs to two problems.
    """
    without_figures = source.remove_figures if source.remove_figures is not None else source.use != "eval"
    kept = []
    owner: dict[str, Problem] = {}
    for problem, answers in _grouped(problems, ledger):
        rows = sum(count for count, *_ in answers.values())
        marker = figure_marker(problem.text) if without_figures else None
        if marker is not None:
            ledger.remove("needs_figure", rows, id=problem.id, marker=marker)
            continue
        golds: dict[str, str] = {}
        wheres: dict[str, str] = {}
        try:
            for meaning, (_, where, answer) in answers.items():
                gold = _canonical(source, answer, where)
                value = meaning if problem.options else gold
                golds.setdefault(value, gold)
                wheres.setdefault(value, where)
        except DataError as error:
            if source.unreadable_gold == "stop":
                raise
            ledger.remove("unreadable_gold", rows, id=problem.id, message=str(error))
            continue
        if len(golds) > 1 and not one_value([(value, source.grader) for value in golds]):
            ledger.remove(
                "conflicting_gold", rows, id=problem.id, golds=list(golds), where=list(wheres.values())
            )
            continue
        other = owner.setdefault(problem.id, problem)
        if other is not problem:
            raise DataError(
                f"{problem.where}: id {problem.id!r} already belongs to another problem ({other.where}); "
                "mend the ids, or "
                "set `id_column: null` to derive them from the text"
            )
        if rows > 1:
            ledger.remove("duplicate_prompt", rows - 1)
        kept.append(Gold(problem, next(iter(golds.values()))))
    return kept


def split(source: Source, golds: list[Gold], ledger: Ledger) -> tuple[list[Gold], list[Gold]]:
    """The source's part of the training and of the evaluation set, both in the order of id hashes.

    Of a source used for both, the `eval_count` smallest hashes are held out. Raises DataError if that
    leaves nothing to train on.
    """
    ordered = sorted(golds, key=lambda gold: order_key(gold.problem.id))
    if source.max_count is not None and len(ordered) > source.max_count:
        ledger.remove("over_max_count", len(ordered) - source.max_count)
        ordered = ordered[: source.max_count]
    if source.use == "train":
        return ordered, []
    if source.use == "eval":
        return [], ordered
    if source.eval_count >= len(ordered):
        raise DataError(
            f"source {source.name}: eval_count is {source.eval_count}, but only {len(ordered)} problems "
            "are left, so none "
            "would be left to train on; lower eval_count, or set `use: eval`"
        )
    return ordered[source.eval_count :], ordered[: source.eval_count]


Answers = dict[str, tuple[int, str, str]]
"""By what is meant: how often it was given, where first, and as which answer there."""


def _grouped(problems: Iterable[Problem], ledger: Ledger) -> Iterable[tuple[Problem, Answers]]:
    """Each different prompt's first problem with all answers given to it."""
    first: dict[str, Problem] = {}
    answers: dict[str, Answers] = {}
    # most repetitions are literal: they need no normalising
    keys: dict[str, str] = {}
    for problem in problems:
        ledger.rows_in += 1
        text = problem.compared
        key = keys.get(text)
        if key is None:
            key = keys[text] = comparison_key(text)
            first.setdefault(key, problem)
        given = answers.setdefault(key, {})
        meaning = meant(problem, problem.answer) if problem.options else problem.answer
        count, where, answer = given.get(meaning, (0, problem.where, problem.answer))
        given[meaning] = count + 1, where, answer
    return ((problem, answers[key]) for key, problem in first.items())


def _canonical(source: Source, answer: str, where: str) -> str:
    try:
        return canonical_gold(answer, source.grader)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
