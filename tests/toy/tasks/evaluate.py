"""Toy stage: an evaluation table of the shape that the real one has."""

from __future__ import annotations

from typing import Any

from tasks.stage import StageContext
from vcppo.files import write_json_atomic


def run(context: StageContext) -> dict[str, Any]:
    context.out("data/evaluation").mkdir(exist_ok=True)
    (context.out("data/evaluation") / "samples.txt").write_text("right\nwrong\n")
    table: dict[str, Any] = {"before": {"toy": _row(0.5)}, "after": {"toy": _row(0.875)}}
    least = context.config.evaluate.promotion.min_average
    reasons = [f"toy: average 0.8750 is below the minimum {least:g}"] if least > 0.875 else []
    table["promotion"] = {"passed": not reasons, "reasons": reasons}
    write_json_atomic(context.out("metrics/evaluate.json"), table)
    return table


def _row(average: float) -> dict[str, Any]:
    return {
        "average_at_k": average,
        "standard_error": 0.03,
        "interval_95": [average - 0.06, average + 0.06],
        "pass_at_1": average,
        "answer_rate": 1.0,
        "truncation_rate": 0.0,
        "mean_response_tokens": 7.0,
        "num_problems": 8,
        "samples_per_problem": 4,
    }
