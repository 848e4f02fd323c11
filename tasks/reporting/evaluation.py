"""From what accuracy to what, and whether the difference is beyond chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.reporting.inputs import POLICIES
from tasks.reporting.numbers import figure, share, signed
from tasks.reporting.plot import WIDTH, Tick
from tasks.reporting.samples import Samples

NAMES = {"before": "before (SFT)", "after": "after training"}
STATUSES = ("right", "wrong", "no_answer", "truncated", "grader_error")

Evaluation = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Headline:
    """One benchmark in a line."""

    benchmark: str
    before: str
    after: str
    difference: str
    verdict: str
    detail: str


def headlines(evaluation: Evaluation) -> list[Headline]:
    """One per benchmark of both policies, in the order of their names."""
    before, after = evaluation["before"], evaluation["after"]
    found = []
    for benchmark in sorted(set(before) & set(after)):
        paired = evaluation.get("difference", {}).get(benchmark)
        change = after[benchmark]["average_at_k"] - before[benchmark]["average_at_k"]
        found.append(
            Headline(
                benchmark=benchmark,
                before=with_interval(before[benchmark]),
                after=with_interval(after[benchmark]),
                difference=f"{signed(paired['difference'])} {interval(paired['low'], paired['high'], signed)}"
                if paired
                else signed(change),
                verdict=verdict(paired) if paired else "without a paired comparison",
                detail=_detail(paired) if paired else "",
            )
        )
    return found


def verdict(paired: Mapping[str, Any]) -> str:
    """Whether interval and sign-flip test call the difference more than chance."""
    apart = paired["low"] > 0 or paired["high"] < 0
    significant = paired["p_value"] < 1 - paired["confidence"]
    if apart and significant:
        return "beyond chance"
    if apart or significant:
        return "at the edge of chance: interval and test disagree"
    return "within what chance gives"


def _detail(paired: Mapping[str, Any]) -> str:
    p_value = f"= {paired['p_value']:.4f}" if paired["p_value"] >= 5e-5 else "< 0.0001"
    detectable = paired["detectable_difference"]
    power = (
        f" A true difference of {share(detectable)} would be found 80 times out of 100 "
        "with so many questions and this noise."
    )
    return (
        f"Paired over {figure(paired['num_questions'])} questions, "
        f"{100 * paired['confidence']:.0f} % bootstrap interval, sign-flip test p {p_value}."
        # no question moved: there is no noise to tell from
        f"{power if detectable > 0 else ''}"
    )


def with_interval(row: Mapping[str, Any]) -> str:
    """`0.532 [0.470, 0.594]`."""
    return f"{share(row['average_at_k'])} {interval(*row['interval_95'])}"


def interval(low: float, high: float, form: Any = share) -> str:
    """`[0.470, 0.594]`."""
    return f"[{form(low)}, {form(high)}]"


def evaluation_table(evaluation: Evaluation) -> dict[str, Any]:
    """`columns` and `rows` of cells: a row a benchmark and policy, a column for each pass@k and maj@k."""
    rows = [
        (benchmark, policy, evaluation[policy][benchmark])
        for benchmark in sorted(set().union(*(evaluation[policy] for policy in POLICIES)))
        for policy in POLICIES
        if benchmark in evaluation[policy]
    ]
    keys = {key for _, _, row in rows for key in row if key.startswith(("pass_at_", "maj_at_"))}
    votes = sorted(keys, key=lambda key: (not key.startswith("pass"), int(key.rpartition("_")[2])))
    return {
        "columns": [
            "avg@k", "95 % interval", *(key.replace("_at_", "@") for key in votes),
            "answer rate", "truncation rate", "broken off", "mean tokens",
            "questions \N{MULTIPLICATION SIGN} samples",
        ],
        "rows": [
            {
                "benchmark": benchmark,
                "policy": NAMES[policy],
                "cells": [
                    share(row["average_at_k"]),
                    interval(*row["interval_95"]),
                    *(share(row[key]) if key in row else figure(None) for key in votes),
                    share(row["answer_rate"]),
                    share(row["truncation_rate"]),
                    share(row.get("abort_rate", 0.0)),
                    figure(row["mean_response_tokens"]),
                    f"{row['num_problems']} \N{MULTIPLICATION SIGN} {row['samples_per_problem']}",
                ],
            }
            for benchmark, policy, row in rows
        ],
    }  # fmt: skip


def settings_table(evaluation: Evaluation) -> list[tuple[str, str]]:
    """How each benchmark was drawn, (benchmark, settings); empty when the evaluation does not say."""
    return [
        (benchmark, ", ".join(f"{name.replace('_', ' ')} {figure(value)}" for name, value in own.items()))
        for benchmark, own in sorted(evaluation.get("settings", {}).items())
    ]


def promotion(evaluation: Mapping[str, Any]) -> str | None:
    """Whether the trained policy may take the place of the one before, in a sentence; None: not judged."""
    judged = evaluation.get("promotion")
    if not judged:
        return None
    if judged["passed"]:
        return "The trained policy passed the promotion gate."
    return f"The trained policy did not pass the promotion gate: {'; '.join(judged['reasons'])}."


def status_table(samples: Mapping[str, Samples]) -> list[dict[str, Any]]:
    """How the graded samples of each policy ended; empty without samples."""
    counts = {policy: own.statuses for policy, own in samples.items() if own.statuses}
    others = sorted({status for count in counts.values() for status in count} - set(STATUSES))
    return [
        {"status": status, "counts": {policy: count[status] for policy, count in counts.items()}}
        for status in (*STATUSES, *others)
        if counts
    ]


INTERVAL_LEFT, INTERVAL_RIGHT, INTERVAL_ROW, INTERVAL_TOP = 12, 426, 58, 8


def interval_plot(evaluation: Evaluation) -> dict[str, Any]:
    """Accuracy with its interval as dots and bars, two rows a benchmark; a drawing `WIDTH` wide."""

    def at(value: float) -> float:
        return INTERVAL_LEFT + value * (INTERVAL_RIGHT - INTERVAL_LEFT)

    groups, descriptions = [], []
    for index, benchmark in enumerate(sorted(set(evaluation["before"]) & set(evaluation["after"]))):
        top = INTERVAL_TOP + index * INTERVAL_ROW
        marks: list[dict[str, Any]] = []
        for number, policy in enumerate(POLICIES):
            row = evaluation[policy][benchmark]
            low, high = row["interval_95"]
            marks.append(
                {
                    "style": 2 - number,
                    "y": top + 26 + 16 * number,
                    "x": at(row["average_at_k"]),
                    "low": at(low),
                    "high": at(high),
                    "text": f"{benchmark}, {NAMES[policy]}: {with_interval(row)}",
                }
            )
        descriptions += [mark["text"] for mark in marks]
        groups.append({"benchmark": benchmark, "y": top + 12, "marks": marks})
    bottom = INTERVAL_TOP + len(groups) * INTERVAL_ROW
    return {
        "groups": groups,
        "width": WIDTH,
        "bottom": bottom,
        "height": bottom + 40,
        "ticks": [Tick(at(tenth / 5), f"{tenth / 5:.1f}") for tenth in range(6)],
        "left": INTERVAL_LEFT,
        "right": INTERVAL_RIGHT,
        "description": "; ".join(descriptions),
        "names": [(2 - number, NAMES[policy]) for number, policy in enumerate(POLICIES)],
    }
