"""Stage train: VC-PPO on verl, from the SFT policy and the value-pretrained critic."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.stage import StageContext
from vcppo.config import Config
from vcppo.config.train import TrainConfig
from vcppo.errors import CheckpointError, DivergenceError
from vcppo.files import publish, write_json_atomic, write_text_atomic

PLOTTED = {
    "score": "critic/score/mean",
    "accuracy": "response/accuracy",
    "response_length": "response/length",
    "length_right": "response/length_right",
    "length_wrong": "response/length_wrong",
    "truncation_rate": "response/truncation_rate",
    "answer_rate": "response/answer_rate",
    "value_bias": "critic/value_bias",
    "explained_variance": "critic/explained_variance",
    "value_loss": "critic/vf_loss",
    "policy_loss": "actor/pg_loss",
    "value_right": "critic/value_mean_right",
    "value_wrong": "critic/value_mean_wrong",
    "lam_actor": "gae/lam_actor",
    "clip_fraction": "actor/pg_clipfrac",
    "clip_fraction_lower": "actor/pg_clipfrac_lower",
    "value_clip_fraction": "critic/vf_clipfrac",
    "approximate_kl": "actor/ppo_kl",
    "kl_to_sft": "actor/kl_to_sft",
    "language_model_loss": "actor/lm_loss",
    "stopping_hazard": "stopping/hazard",
    "stopping_advantage": "stopping/advantage",
    "entropy": "actor/entropy_loss",
    "tokens_per_second": "perf/throughput",
    "seconds": "timing_s/step",
    "seconds_rollouts": "timing_s/gen",
    "seconds_values": "timing_s/values",
    "seconds_advantages": "timing_s/adv",
    "seconds_update_critic": "timing_s/update_critic",
    "seconds_update_actor": "timing_s/update_actor",
}
"""Column of plots/train.csv and the metric it shows."""


def run(context: StageContext) -> Mapping[str, Any]:
    """Train `num_steps` steps, resuming from the newest complete checkpoint of this fingerprint.

    Nothing is published when a guard stops the run: its DivergenceError passes through, and the evidence,
    the metrics and the last good checkpoint stay in the work directory.
    """
    from training.ppo.launch import train
    from training.ppo.verl_config import RunPaths

    paths = RunPaths(
        policy=Path("models/sft").resolve(),
        critic=critic_folder(context.config),
        train_file=Path("data/prepared/train.parquet").resolve(),
        work=context.work.resolve(),
    )
    context.wandb_run = context.fingerprint
    result = train(context.config, context.runtime, paths, context.fingerprint)
    metrics = _read_lines(paths.metrics)
    summary = summarise(metrics, result.resumed_from)
    for guard, step in open_rows(metrics, context.config.train).items():
        context.say(
            f"from step {step} to the end outside the limit of guard {guard}, too short a row to act on"
        )
        summary["guards"].setdefault(guard, {})["outside_since"] = step
    publish(result.checkpoint / "actor" / "huggingface", context.out("models/policy"), link=True)
    publish(paths.rollouts, context.out("data/training_rollouts"), link=True)
    publish(paths.metrics, context.out("data/training_rollouts") / "metrics.jsonl", link=True)
    publish_wandb_segments(paths.work, context.out("data/training_rollouts"))
    write_text_atomic(context.out("plots/train.csv"), plot_table(metrics))
    write_json_atomic(context.out("metrics/train.json"), summary)
    return summary


def publish_wandb_segments(work: Path, rollouts: Path) -> None:
    """The record file of each attempt's offline W&B run into `rollouts`/wandb, each in a folder of its own.

    `wandb sync FOLDER` uploads one; all have the run's id, so they become one run. Logs and links that W&B
    leaves beside them stay behind.
    """
    for segment in sorted(work.glob("wandb/offline-run-*/run-*.wandb")):
        target = rollouts / "wandb" / segment.parent.name / segment.name
        target.parent.mkdir(parents=True, exist_ok=True)
        publish(segment, target, link=True)


def critic_folder(config: Config) -> Path | None:
    """Where the critic starts. None: from the SFT policy's trunk with a fresh head.

    Raises:
        DivergenceError: the value-pretrained critic did not pass its gate.
        CheckpointError: the folder holds no value head.
    """
    if config.train.algorithm == "grpo" or config.train.critic_start == "sft":
        return None
    folder = Path(
        "models/critic" if config.train.critic_start == "value_pretrained" else "models/reward_model"
    )
    if config.train.critic_start == "value_pretrained":
        gate = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
        if not gate["passed"]:
            raise DivergenceError(
                f"{folder}: the value-pretrained critic did not pass its gate: {'; '.join(gate['reasons'])}. "
                "Pretrain it longer or on more rollouts (pretrain_critic, rollouts), or change "
                "pretrain_critic.gate"
            )
    elif (folder / "unused.json").is_file():
        raise CheckpointError(f"{folder}: no reward model was trained; run `dvc repro reward_model`")
    from training.models.value import check_value_model

    check_value_model(folder)
    return folder.resolve()


def summarise(metrics: Sequence[Mapping[str, Any]], resumed_from: int | None) -> dict[str, Any]:
    """First and last step side by side, where guards acted, and what the whole run cost."""
    first, last = metrics[0], metrics[-1]
    return {
        "num_steps": last["step"],
        "resumed_from": resumed_from,
        "accuracy": {"first": first["response/accuracy"], "last": last["response/accuracy"]},
        "response_length": {"first": first["response/length"], "last": last["response/length"]},
        "value_bias": {"first": first.get("critic/value_bias"), "last": last.get("critic/value_bias")},
        "explained_variance": {
            "first": first.get("critic/explained_variance"),
            "last": last.get("critic/explained_variance"),
        },
        "guards": {
            key.removeprefix("guard/"): {"acted_at": [m["step"] for m in metrics if m.get(key)]}
            for key in sorted({key for m in metrics for key in m if key.startswith("guard/") and m[key]})
        },
        "seconds_per_step": sum(m["timing_s/step"] for m in metrics) / len(metrics),
        "tokens": sum(m["perf/total_num_tokens"] for m in metrics),
    }


def open_rows(metrics: Sequence[Mapping[str, Any]], config: TrainConfig) -> dict[str, int]:
    """Guards that were outside their limit when the run ended, and since which step: fewer steps in a row
    than they act on, so the policy is published, but somebody should know."""
    from training.ppo.guards import Guards

    watch = Guards(config.guards, config.reward)
    watch.replay(metrics)
    return watch.open_rows()


def plot_table(metrics: Sequence[Mapping[str, Any]]) -> str:
    """plots/train.csv: one row a step."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", *PLOTTED])
    for line in metrics:
        writer.writerow([line["step"], *(line.get(key) for key in PLOTTED.values())])
    return text.getvalue()


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
