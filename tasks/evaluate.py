"""Stage evaluate: avg@k with a question-clustered standard error, of the SFT and of the trained policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.evaluation.benchmarks import Benchmark, resolve
from tasks.evaluation.figures import benchmark_metrics, paired_metrics
from tasks.evaluation.policies import evaluate_policy
from tasks.evaluation.promotion import promotion
from tasks.evaluation.self_check import self_check
from tasks.stage import StageContext
from vcppo.files import write_json_atomic

POLICIES = {"before": Path("models/sft"), "after": Path("models/policy")}


def run(context: StageContext) -> Mapping[str, Any]:
    """Sample, grade and measure both policies on the held-out problems; every sample is kept.

    Raises DataError (an empty benchmark, samples missing, more responses without a readable answer than
    allowed), GraderError (self-check, canary, more answers that exhaust the grader than allowed),
    ConfigurationError and InfrastructureError (engine). Finished shards are kept for the next attempt.
    """
    from training.generation.prompts import read_problems

    benchmarks = resolve(context.config, read_problems(Path("data/prepared/eval.parquet")))
    self_check({"aime", "gpqa"} | {p.grader for benchmark in benchmarks for p in benchmark.problems})
    rows = {name: evaluate_policy(context, name, folder, benchmarks) for name, folder in POLICIES.items()}
    metrics = measure(rows, benchmarks, context.config.seed)
    metrics["promotion"] = promotion(context.config.evaluate.promotion, metrics)
    for benchmark, difference in metrics["difference"].items():
        before, after = (metrics[name][benchmark]["average_at_k"] for name in POLICIES)
        context.say(f"{benchmark}: {before:.3f} -> {after:.3f}, difference {difference['difference']:+.3f}")
    verdict = metrics["promotion"]
    context.say(
        f"promotion: {'passed' if verdict['passed'] else 'refused: ' + '; '.join(verdict['reasons'])}"
    )
    write_json_atomic(context.out("metrics/evaluate.json"), metrics)
    return metrics


def measure(
    rows: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]], benchmarks: Sequence[Benchmark], seed: int
) -> dict[str, Any]:
    """`before`, `after` and their `difference`, each by benchmark; `settings`: how each was drawn.

    rows: by policy and benchmark.
    """
    metrics: dict[str, Any] = {
        name: {
            benchmark.name: benchmark_metrics(
                own[benchmark.name], benchmark.samples_per_problem, benchmark.pass_at
            )
            for benchmark in benchmarks
        }
        for name, own in rows.items()
    }
    metrics["difference"] = {
        benchmark.name: paired_metrics(rows["before"][benchmark.name], rows["after"][benchmark.name], seed)
        for benchmark in benchmarks
    }
    metrics["settings"] = {benchmark.name: benchmark.settings() for benchmark in benchmarks}
    return metrics
