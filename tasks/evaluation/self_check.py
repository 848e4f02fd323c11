"""The evaluator checks itself: stored responses whose grades are known must give known figures to the
digit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tasks.evaluation.figures import benchmark_metrics, check_complete, paired_metrics
from vcppo.errors import GraderError
from vcppo.grading import GradeItem, grade_batch

SAMPLES = 4
BOX = r"So the answer is \boxed{%s}."
# (gold, [(response, finish_reason, grade)] * SAMPLES) of each question
STORED: dict[str, list[tuple[str, list[tuple[str, str, str]]]]] = {
    "aime": [
        (
            "42",
            [
                (BOX % "042", "stop", "right"),
                (BOX % "42", "stop", "right"),
                (BOX % "6\\cdot 7", "stop", "wrong"),
                ("I cannot tell.", "stop", "no_answer"),
            ],
        ),
        (
            "204",
            [
                (BOX % r"180 \text{ or } 204", "stop", "wrong"),
                (r"It is \boxed{180}. I was wrong: that is no answer. Finally \boxed{204}.", "stop", "right"),
                (r"So \boxed{20", "length", "truncated"),
                (BOX % "204", "stop", "right"),
            ],
        ),
        ("7", [(BOX % "8", "stop", "wrong")] * SAMPLES),
    ],
    "gpqa": [
        (
            "B",
            [
                (BOX % "B", "stop", "right"),
                ("Answer: (B)", "stop", "right"),
                (r"The answer is \boxed{B}, not the one that begins with D", "stop", "right"),
                (BOX % "C", "stop", "wrong"),
            ],
        ),
        (
            "D",
            [
                ("The data are conclusive.", "stop", "no_answer"),
                ("Thus A good", "length", "truncated"),
                (BOX % "D", "stop", "right"),
                (BOX % "A", "stop", "wrong"),
            ],
        ),
    ],
    "math": [
        (
            "\\frac{1}{2}",
            [
                (BOX % "0.5", "stop", "right"),
                (BOX % "\\frac{2}{4}", "stop", "right"),
                (BOX % "0.6", "stop", "wrong"),
                ("", "stop", "no_answer"),
            ],
        ),
        ("2\\sqrt{3}", [(BOX % "\\sqrt{12}", "stop", "right")] * SAMPLES),
    ],
    "steps": [
        (
            "3 steps, at most 1 wrong",
            [
                ("a377b122c066", "stop", "right"),
                ("a371b122c066", "stop", "right"),
                ("a371b120c066", "stop", "wrong"),
                ("a377b122", "length", "truncated"),
            ],
        ),
        (
            "2 steps, at most 0 wrong",
            [
                ("a377b122", "stop", "right"),
                ("a377", "stop", "wrong"),
                ("a377c122", "stop", "wrong"),
                ("", "stop", "no_answer"),
            ],
        ),
    ],
}
FIGURES: dict[str, dict[str, float]] = {
    "aime": {
        "average_at_k": 4 / 12,
        "standard_error": (2 / 9 / 12) ** 0.5,
        "pass_at_1": 4 / 12,
        "pass_at_2": (5 / 6 + 5 / 6 + 0) / 3,
        "maj_at_4": 2 / 3,
        "answer_rate": 10 / 12,
        "truncation_rate": 1 / 12,
        "parser_failure_rate": 1 / 12,
    },
    "gpqa": {
        "average_at_k": 4 / 8,
        "standard_error": (1 / 8 / 4) ** 0.5,
        "pass_at_1": 4 / 8,
        "pass_at_2": (1 + 1 / 2) / 2,
        "maj_at_4": (1 + 1 / 2) / 2,
        "answer_rate": 6 / 8,
        "truncation_rate": 1 / 8,
        "parser_failure_rate": 1 / 8,
    },
    "math": {
        "average_at_k": 6 / 8,
        "standard_error": (1 / 8 / 4) ** 0.5,
        "pass_at_1": 6 / 8,
        "pass_at_2": (5 / 6 + 1) / 2,
        "maj_at_4": 1.0,
        "answer_rate": 7 / 8,
        "truncation_rate": 0.0,
        "parser_failure_rate": 1 / 8,
    },
    "steps": {
        "average_at_k": 3 / 8,
        "standard_error": (1 / 64 / 2) ** 0.5,
        "pass_at_1": 3 / 8,
        "pass_at_2": (5 / 6 + 1 / 2) / 2,
        "maj_at_4": (1 + 1 / 3) / 2,
        "answer_rate": 6 / 8,
        "truncation_rate": 1 / 8,
        "parser_failure_rate": 1 / 8,
    },
}
PASS_AT = (1, 2)


def self_check(graders: Iterable[str]) -> None:
    """Grade and score the stored responses of these graders (aime, gpqa and steps take milliseconds, math
    starts its workers). Raises GraderError naming what came out otherwise."""
    for grader in sorted(set(graders)):
        rows = graded_rows(grader)
        check_complete(f"self-check of {grader}", rows, {row["id"] for row in rows}, SAMPLES)
        found = benchmark_metrics(rows, SAMPLES, PASS_AT)
        # against itself there is no difference, whatever the grades are
        found["difference to itself"] = paired_metrics(rows, rows, seed=0)["difference"]
        expected = FIGURES[grader] | {"difference to itself": 0.0}
        for name, value in expected.items():
            if abs(found[name] - value) > 1e-12:
                raise GraderError(
                    f"self-check of the evaluator: {name} of the stored {grader} responses is "
                    f"{found[name]!r}, must be {value!r}. Grader or statistics are broken; nothing was "
                    "evaluated"
                )


def graded_rows(grader: str) -> list[dict[str, Any]]:
    """The stored responses of a grader as evaluation rows. Raises GraderError for a grade not theirs."""
    rows = []
    for question, (gold, samples) in enumerate(STORED[grader]):
        grades = grade_batch([GradeItem(text, gold, reason) for text, reason, _ in samples], grader)
        for sample, ((text, reason, expected), grade) in enumerate(zip(samples, grades, strict=True)):
            if grade.status != expected:
                raise GraderError(
                    f"self-check of the evaluator: {text!r} against {gold!r} must be {expected}, the "
                    f"{grader} grader says {grade.status} ({grade.detail or 'no detail'}); nothing was "
                    "evaluated"
                )
            rows.append(
                {
                    "id": f"{grader}/{question}",
                    "sample": sample,
                    "finish_reason": reason,
                    "status": grade.status,
                    "answer": grade.answer,
                    "num_response_tokens": len(text),
                }
            )
    return rows
