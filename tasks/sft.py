"""Stage sft: cold start of the policy (VC-PPO starts from a policy that knows the thinking format)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.plots import write_csv
from tasks.stage import StageContext
from vcppo.files import publish, write_json_atomic

COLUMNS = ("step", "loss", "learning_rate")


def run(context: StageContext) -> Mapping[str, Any]:
    """Imitate the prepared traces, or pass the given model through when `sft.enabled` is false.

    Raises DataError (no usable trace), ConfigurationError (model, batch size), DivergenceError (non-finite
    loss).
    """
    metrics = train(context) if context.config.sft.enabled else pass_through(context)
    write_json_atomic(context.out("metrics/sft.json"), metrics)
    return metrics


def train(context: StageContext) -> dict[str, Any]:
    """SFT on transformers' Trainer; resumes from the work directory."""
    from training.finetune.distributed import run_job
    from training.finetune.sft import SftJob, read_traces
    from training.finetune.sft import run as run_sft
    from training.finetune.trainer import read_history

    config = context.config
    traces, too_long = read_traces(
        Path("data/prepared/sft.parquet"),
        config.model,
        config.data.max_prompt_tokens,
        config.data.max_response_tokens,
    )
    dropped = f", {too_long} left out as too long" if too_long else ""
    context.say(f"{len(traces)} traces{dropped}")
    folder = (context.work / "sft").resolve()
    job = SftJob(
        stage=context.stage,
        folder=folder,
        runtime=context.runtime,
        model=config.model,
        sft=config.sft,
        seed=config.seed,
        traces=tuple(traces),
    )
    run_job(run_sft, job, context.progress)
    history = [entry for entry in read_history(folder) if "loss" in entry]
    publish(folder / "model", context.out("models/sft"), link=True)
    write_csv(context.out("plots/sft.csv"), COLUMNS, history)
    return {
        "enabled": True,
        "num_traces": len(traces),
        "num_too_long": too_long,
        "num_steps": int(history[-1]["step"]),
        "loss_start": history[0]["loss"],
        "loss_end": _mean([entry["loss"] for entry in history[-20:]]),
    }


def pass_through(context: StageContext) -> dict[str, Any]:
    """The given model, converted to safetensors with its tokenizer."""
    from training.models import build_initial_policy, save_policy

    policy, tokenizer = build_initial_policy(context.config.model, context.config.seed)
    save_policy(policy, tokenizer, context.out("models/sft"))
    write_csv(context.out("plots/sft.csv"), COLUMNS, [])
    context.say("sft.enabled is false: the policy starts as the given model")
    return {"enabled": False, "num_steps": 0}


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)
