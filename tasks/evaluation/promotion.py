"""May the trained policy take the place of the one before? metrics/evaluate.json says it; no run fails by
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcppo.config.evaluate import PromotionConfig


def promotion(gate: PromotionConfig, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """`{"passed": bool, "reasons": [...]}`: why not, or nothing.

    metrics: with `after` and `difference`, each by benchmark.
    """
    reasons = []
    for benchmark in gate.benchmarks or sorted(metrics["after"]):
        average = metrics["after"][benchmark]["average_at_k"]
        difference = metrics["difference"][benchmark]
        if average < gate.min_average:
            reasons.append(f"{benchmark}: average {average:.4f} is below the minimum {gate.min_average:g}")
        if gate.require_improvement and difference["low"] <= 0:
            reasons.append(
                f"{benchmark}: the 95 % interval of the difference, [{difference['low']:+.4f}, "
                f"{difference['high']:+.4f}], is not above zero"
            )
    return {"passed": not reasons, "reasons": reasons}
