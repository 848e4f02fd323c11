"""From problems as read to problems fit for use: canonical golds, unique prompts with one gold each, a
held-out split."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from tasks.sources.ledger import Ledger
from tasks.sources.problem import Problem, order_key
from vcppo.config.sources import Source
from vcppo.errors import DataError
from vcppo.grading import canonical_gold


@dataclass(frozen=True, slots=True)
class Gold:
    """A problem whose gold answer the grader can read."""

    problem: Problem
    gold: str
    """Canonical form of the answer."""


def comparison_key(text: str) -> str:
    """What two prompts are compared by: composed characters, single spaces. Letters, operators and signs
    all count."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def clean(source: Source, problems: Iterable[Problem], ledger: Ledger) -> list[Gold]:
    """The source's different prompts, each with its canonical gold, in the order in which they first came.

    A repeated prompt with the same gold is kept once; one with several golds is dropped wholly, and listed.
    Raises DataError naming the row if the grader cannot read a gold answer, or if one id belongs to two
    problems.
    """
    first, answers = _group(problems, ledger)
    kept = []
    owner: dict[str, Problem] = {}
    for key, problem in first.items():
        golds: dict[str, str] = {}
        rows = 0
        for answer, (count, where) in answers[key].items():
            golds.setdefault(_canonical(source, answer, where), where)
            rows += count
        if len(golds) > 1:
            ledger.remove(
                "conflicting_gold", rows, id=problem.id, golds=sorted(golds), where=sorted(golds.values())
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
        kept.append(Gold(problem, next(iter(golds))))
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


def _group(
    problems: Iterable[Problem], ledger: Ledger
) -> tuple[dict[str, Problem], dict[str, dict[str, tuple[int, str]]]]:
    """First problem of each comparison key; and for each key how often, and where first, each answer was
    given."""
    first: dict[str, Problem] = {}
    answers: dict[str, dict[str, tuple[int, str]]] = {}
    for problem in problems:
        ledger.rows_in += 1
        key = comparison_key(problem.text)
        first.setdefault(key, problem)
        given = answers.setdefault(key, {})
        count, where = given.get(problem.answer, (0, problem.where))
        given[problem.answer] = count + 1, where
    return first, answers


def _canonical(source: Source, answer: str, where: str) -> str:
    try:
        return canonical_gold(answer, source.grader)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
