"""Stage evaluate: avg@k with a question-clustered standard error, of the SFT and of the trained policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tasks.stage import StageContext
from vcppo.errors import DataError
from vcppo.files import write_json_atomic
from vcppo.statistics import (
    average_at_k,
    clustered_standard_error,
    majority_at_k,
    paired_difference,
    pass_at_k,
)

Row = Mapping[str, Any]
NORMAL_95 = 1.959964


def run(context: StageContext) -> Mapping[str, Any]:
    """Sample, grade and measure both policies on the held-out problems; every sample is kept."""
    policies = {"before": Path("models/sft"), "after": Path("models/policy")}
    rows = {name: evaluate_policy(context, name, folder) for name, folder in policies.items()}
    metrics: dict[str, Any] = {
        name: {
            benchmark: benchmark_metrics(
                own, context.config.evaluate.samples_per_problem, context.config.evaluate.pass_at
            )
            for benchmark, own in by_benchmark(rows[name]).items()
        }
        for name in policies
    }
    metrics["difference"] = {
        benchmark: paired_metrics(
            by_benchmark(rows["before"])[benchmark],
            by_benchmark(rows["after"])[benchmark],
            context.config.seed,
        )
        for benchmark in metrics["before"]
    }
    for benchmark, difference in metrics["difference"].items():
        before, after = (metrics[name][benchmark]["average_at_k"] for name in policies)
        context.say(f"{benchmark}: {before:.3f} -> {after:.3f}, difference {difference['difference']:+.3f}")
    write_json_atomic(context.out("metrics/evaluate.json"), metrics)
    return metrics


def evaluate_policy(context: StageContext, name: str, policy: Path) -> list[dict[str, Any]]:
    """All rollout rows of one policy, drawn in resumable shards; stored as data/evaluation/NAME.parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from training.generation.engine import EngineSettings
    from training.generation.prompts import read_problems
    from training.generation.rollouts import ShardPlan, generate_shards, read_rollouts

    config = context.config
    problems = read_problems(Path("data/prepared/eval.parquet"), config.evaluate.max_problems)
    settings = EngineSettings(
        policy=policy.resolve(),
        seed=config.seed,
        sampling=config.evaluate.sampling,
        max_prompt_tokens=config.data.max_prompt_tokens,
        max_response_tokens=config.evaluate.max_response_tokens or config.data.max_response_tokens,
        batch_size=context.runtime.rollout_batch_size,
        num_threads=context.runtime.threads_per_process,
        device=context.runtime.device,
    )
    plan = ShardPlan(
        directory=context.work / "shards" / name,
        problems=problems,
        samples_per_problem=config.evaluate.samples_per_problem,
        problems_per_shard=config.evaluate.problems_per_shard,
        # the same noise for both policies: less of the difference between them is chance
        key_prefix="evaluate",
    )
    context.say(f"{name} training: {len(problems)} problems x {plan.samples_per_problem} samples of {policy}")
    shards = generate_shards(plan, settings, config.train.reward, context.runtime, context.progress)
    rows = read_rollouts(plan.directory)
    expected = len(problems) * plan.samples_per_problem
    if len(rows) != expected:
        raise DataError(
            f"{plan.directory}: holds {len(rows)} samples, expected are {expected}; remove it and run again"
        )
    target = context.out("data/evaluation") / f"{name}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables([pq.read_table(shard) for shard in shards]), target)
    return rows


def by_benchmark(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each data source, in the order of the file."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["data_source"]].append(row)
    return dict(grouped)


def score_matrix(rows: Sequence[Row]) -> dict[str, list[float]]:
    """1 for right, 0 for not, of each question's samples in sample order."""
    questions: dict[str, list[float]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r["id"], r["sample"])):
        questions[row["id"]].append(float(row["status"] == "right"))
    return dict(questions)


def benchmark_metrics(
    rows: Sequence[Row], samples_per_problem: int, pass_at: Sequence[int]
) -> dict[str, Any]:
    """pass@1 as avg@k with its 95 % interval, pass@k, maj@k, and how the responses ended.

    Raises DataError unless every question has `samples_per_problem` samples.
    """
    matrix = score_matrix(rows)
    uneven = {q: len(s) for q, s in matrix.items() if len(s) != samples_per_problem}
    if uneven:
        raise DataError(f"questions with another number of samples than {samples_per_problem}: {uneven}")
    scores = list(matrix.values())
    average, error = average_at_k(scores), clustered_standard_error(scores)
    right = [int(sum(row)) for row in scores]
    answers: dict[str, list[str | None]] = defaultdict(list)
    golds = {row["id"]: row["gold"] for row in rows}
    for row in sorted(rows, key=lambda r: (r["id"], r["sample"])):
        # a right answer votes for the gold however it is spelled
        answers[row["id"]].append(row["gold"] if row["status"] == "right" else row["answer"])
    count = len(rows)
    metrics: dict[str, Any] = {
        "average_at_k": average,
        "standard_error": error,
        "interval_95": [max(0.0, average - NORMAL_95 * error), min(1.0, average + NORMAL_95 * error)],
        "answer_rate": sum(row["answer"] is not None for row in rows) / count,
        "truncation_rate": sum(row["finish_reason"] == "length" for row in rows) / count,
        "mean_response_tokens": sum(len(row["response_ids"]) for row in rows) / count,
        "num_problems": len(matrix),
        "samples_per_problem": samples_per_problem,
    }
    for k in pass_at:
        metrics[f"pass_at_{k}"] = pass_at_k(samples_per_problem, right, k)
    majorities = [majority_at_k(votes, golds[q], samples_per_problem) for q, votes in answers.items()]
    metrics[f"maj_at_{samples_per_problem}"] = sum(majorities) / len(majorities)
    return metrics


def paired_metrics(before: Sequence[Row], after: Sequence[Row], seed: int) -> dict[str, Any]:
    """After minus before on the same questions, with its interval and sign-flip test."""
    first, second = score_matrix(before), score_matrix(after)
    questions = sorted(first)
    result = paired_difference([first[q] for q in questions], [second[q] for q in questions], seed=seed)
    return asdict(result)
