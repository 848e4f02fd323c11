"""Stage rollouts: responses of the frozen SFT policy with scores and log-probabilities (VC-PPO section
3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.stage import StageContext
from vcppo.errors import GraderError
from vcppo.files import publish, write_json_atomic
from vcppo.grading.result import ANSWERED, UNGRADED


def run(context: StageContext) -> Mapping[str, Any]:
    """Draw `samples_per_prompt` responses of the first `num_prompts` training prompts (by id hash)."""
    from training.generation.engine import EngineSettings
    from training.generation.prompts import read_problems
    from training.generation.rollouts import ShardPlan, generate_shards

    config = context.config
    problems = read_problems(Path("data/prepared/train.parquet"), config.rollouts.num_prompts)
    settings = EngineSettings(
        policy=Path("models/sft").resolve(),
        seed=config.seed,
        sampling=config.rollouts.sampling,
        max_prompt_tokens=config.data.max_prompt_tokens,
        max_response_tokens=config.data.max_response_tokens,
        batch_size=context.runtime.rollout_batch_size,
        num_threads=context.runtime.threads_per_process,
        device=context.runtime.device,
    )
    plan = ShardPlan(
        directory=context.work / "shards",
        problems=problems,
        samples_per_problem=config.rollouts.samples_per_prompt,
        problems_per_shard=config.rollouts.prompts_per_shard,
        key_prefix="rollouts",
    )
    context.say(f"{len(problems)} prompts x {plan.samples_per_problem} samples of {settings.policy.name}")
    generate_shards(plan, settings, config.train.reward, context.runtime, context.progress)
    metrics = summarise(plan.directory)
    publish(plan.directory, context.out("data/rollouts"), link=True)
    write_json_atomic(context.out("metrics/rollouts.json"), metrics)
    context.say(
        f"accuracy {metrics['accuracy']:.3f}, mean length {metrics['mean_response_tokens']:.1f} tokens"
    )
    return metrics


def summarise(directory: Path) -> dict[str, Any]:
    """Rates and lengths over all rollouts of a folder of shards; accuracy of those that could be graded.
    Raises GraderError if there is none."""
    from training.generation.rollouts import read_rollouts

    rows = read_rollouts(directory)
    count = len(rows)
    lengths = [len(row["response_ids"]) for row in rows]
    graded = [row for row in rows if row["status"] != UNGRADED]
    if not graded:
        raise GraderError(f"{directory}: not one of {count} responses could be graded")
    return {
        "num_rollouts": count,
        "num_prompts": len({row["id"] for row in rows}),
        "accuracy": sum(row["status"] == "right" for row in graded) / len(graded),
        "grader_errors": count - len(graded),
        "answer_rate": sum(row["status"] in ANSWERED for row in rows) / count,
        "truncation_rate": sum(row["finish_reason"] == "length" for row in rows) / count,
        "mean_response_tokens": sum(lengths) / count,
        "max_response_tokens": max(lengths),
    }
