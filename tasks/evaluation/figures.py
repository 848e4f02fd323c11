"""Samples to numbers: avg@k with its interval, pass@k, maj@k, how responses ended, paired differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import fsum
from typing import Any

from vcppo.errors import DataError
from vcppo.grading.result import ANSWERED, GRADED, STATUSES, UNGRADED
from vcppo.statistics import (
    average_at_k,
    clustered_standard_error,
    majority_at_k,
    paired_difference,
    pass_at_k,
    wilson_interval,
)

Row = Mapping[str, Any]
NORMAL_95 = 1.959964


def by_benchmark(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each data source, in the order of the file."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["data_source"]].append(row)
    return dict(grouped)


def score_matrix(rows: Sequence[Row]) -> dict[str, list[float]]:
    """1 for right, 0 for not, of each question's graded samples in sample order; a question without any is
    not there."""
    questions: dict[str, list[float]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r["id"], r["sample"])):
        if row["status"] not in GRADED:
            continue
        questions[row["id"]].append(float(row["status"] == "right"))
    return dict(questions)


def question_means(matrix: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean score of each question's graded samples."""
    return {id_: fsum(scores) / len(scores) for id_, scores in matrix.items()}


def check_complete(
    benchmark: str, rows: Sequence[Row], questions: Iterable[str], samples_per_problem: int
) -> None:
    """Every sample of every question is there once, and graded or known to be ungradable.

    Raises DataError naming what is missing, double, of another question or without a grade: none of these is
    a wrong answer.
    """
    wanted = {(question, sample) for question in questions for sample in range(samples_per_problem)}
    counts = Counter((row["id"], row["sample"]) for row in rows)
    complaints = {
        "missing": sorted(wanted - counts.keys()),
        "not asked for": sorted(counts.keys() - wanted),
        "double": sorted(key for key, count in counts.items() if count > 1),
        "without a grade": sorted(
            (row["id"], row["sample"]) for row in rows if row["status"] not in STATUSES
        ),
    }
    wrong = [
        f"{len(keys)} {what} (first: sample {keys[0][1]} of {keys[0][0]})"
        for what, keys in complaints.items()
        if keys
    ]
    if wrong:
        raise DataError(
            f"benchmark {benchmark}: {len(rows)} samples, expected are {len(wanted)} = questions x "
            f"{samples_per_problem}; {'; '.join(wrong)}. Nothing of it is counted as wrong: remove the "
            "stage's work directory and run again"
        )


def parser_failure_rate(rows: Sequence[Row]) -> float:
    """Share of the responses that ended by themselves and hold no answer that the grader can read, or an
    answer that it cannot grade."""
    return sum(map(is_parser_failure, rows)) / len(rows)


def is_parser_failure(row: Row) -> bool:
    """Whether nothing can be said of a response because of how it is written."""
    unread = row["finish_reason"] == "stop" and row["status"] == "no_answer"
    return unread or row["status"] == UNGRADED


def is_aborted(row: Row) -> bool:
    """Whether the engine broke the response off: it ended neither by itself nor at the token limit."""
    return row["finish_reason"] not in ("stop", "length")


def finish_reasons(rows: Sequence[Row]) -> str:
    """`stop 90, length 7, abort 3`, the most frequent first."""
    counts = Counter(row["finish_reason"] for row in rows)
    return ", ".join(f"{reason} {count}" for reason, count in counts.most_common())


def benchmark_metrics(
    rows: Sequence[Row], samples_per_problem: int, pass_at: Sequence[int]
) -> dict[str, Any]:
    """pass@1 as avg@k with its 95 % interval, pass@k, maj@k, and how the responses ended.

    rows: complete (`check_complete`). Of questions with ungradable samples the others count; pass@k is over
    the questions with at least k graded samples. Raises DataError when no sample has a grade.
    """
    matrix = score_matrix(rows)
    scores = list(matrix.values())
    if len({len(own) for own in scores}) > 1:  # questions weigh the same, however many of theirs are graded
        scores = [[mean] for mean in question_means(matrix).values()]
    average, error = average_at_k(scores), clustered_standard_error(scores)
    outcomes = [(len(own), int(sum(own))) for own in matrix.values()]
    answers: dict[str, list[str | None]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r["id"], r["sample"])):
        answers[row["id"]].append(_vote(row))
    count = len(rows)
    metrics: dict[str, Any] = {
        "average_at_k": average,
        "standard_error": error,
        "interval_95": interval(average, error, len(matrix)),
        "answer_rate": sum(row["status"] in ANSWERED for row in rows) / count,
        "truncation_rate": sum(row["finish_reason"] == "length" for row in rows) / count,
        "abort_rate": sum(map(is_aborted, rows)) / count,
        "parser_failure_rate": parser_failure_rate(rows),
        "mean_response_tokens": sum(row["num_response_tokens"] for row in rows) / count,
        "grader_errors": sum(row["status"] == UNGRADED for row in rows),
        "num_problems": len(matrix),
        "samples_per_problem": samples_per_problem,
    }
    for k in pass_at:
        enough = [(drawn, right) for drawn, right in outcomes if drawn >= k]
        if enough:
            metrics[f"pass_at_{k}"] = pass_at_k(
                [drawn for drawn, _ in enough], [right for _, right in enough], k
            )
    majorities = [majority_at_k(answers[id_], RIGHT, samples_per_problem) for id_ in matrix]
    metrics[f"maj_at_{samples_per_problem}"] = sum(majorities) / len(majorities)
    return metrics


RIGHT = "right answer"


def _vote(row: Row) -> str | None:
    """What a sample votes for: right answers agree however they are spelled, an option however it is
    lettered; what is no answer (`ANSWERED`) votes for nothing, whatever text it carries."""
    if row["status"] == "right":
        return RIGHT
    if row["status"] not in ANSWERED:
        return None
    answer, order = row["answer"], row.get("permutation")
    if answer is not None and order and len(answer) == 1 and answer in "ABCD":
        return f"option {order['ABCD'.index(answer)]}"
    return answer


def interval(average: float, error: float, num_questions: int) -> list[float]:
    """95 % interval of avg@k. When all questions agree the standard error is 0 and says nothing: then the
    Wilson interval of so many questions."""
    if error == 0 and average in (0.0, 1.0):
        return list(wilson_interval(round(average * num_questions), num_questions))
    return [max(0.0, average - NORMAL_95 * error), min(1.0, average + NORMAL_95 * error)]


def paired_metrics(before: Sequence[Row], after: Sequence[Row], seed: int) -> dict[str, Any]:
    """After minus before on the same questions (those with a graded sample in both), with its interval and
    sign-flip test."""
    first, second = (question_means(score_matrix(rows)) for rows in (before, after))
    questions = sorted(first.keys() & second.keys())
    result = paired_difference([first[q] for q in questions], [second[q] for q in questions], seed=seed)
    return asdict(result)
