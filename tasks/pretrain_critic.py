"""Stage pretrain_critic: value pretraining on the rollouts of the frozen SFT policy (VC-PPO section 3.1).

A critic that misses its gate is still published, with the reasons in `models/critic/gate.json`: the train
stage refuses to start from it, and its curves can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.plots import write_csv
from tasks.stage import StageContext
from vcppo.config import PretrainCriticConfig
from vcppo.errors import CheckpointError
from vcppo.files import publish, write_json_atomic

if TYPE_CHECKING:
    from training.finetune.rollouts import Rollout

CURVE = ("step", "value_loss", "held_out_value_loss", "explained_variance", "value_bias")
BY_POSITION = ("position", "value", "return", "count")


def run(context: StageContext) -> Mapping[str, Any]:
    """Fit values to Monte-Carlo returns, measure them on held-out prompts, judge them by the gate.

    Raises DataError (no usable rollout), CheckpointError (start_from reward_model without a usable one),
    DivergenceError (non-finite loss).
    """
    from training.finetune.calibration import gate
    from training.finetune.rollouts import load_rollouts
    from training.models import value_head_sha256

    config = context.config
    rollouts, left_out = load_rollouts(Path("data/rollouts"))
    context.say(f"{len(rollouts)} rollouts of {len({r.prompt for r in rollouts})} prompts")
    folder = (context.work / "critic").resolve()
    curve, measured = pretrain(context, config.pretrain_critic, rollouts, folder)
    reasons = gate(measured, config.pretrain_critic.gate)
    verdict = {
        "passed": not reasons,
        "reasons": reasons,
        "limits": config.pretrain_critic.gate.model_dump(mode="json"),
        "explained_variance": measured["explained_variance"],
        "value_bias": measured["value_bias"],
        "value_head_sha256": value_head_sha256(folder / "model"),
    }
    publish(folder / "model", context.out("models/critic"), link=True)
    write_json_atomic(context.out("models/critic") / "gate.json", verdict)
    write_csv(context.out("plots/pretrain_critic.csv"), CURVE, curve)
    write_csv(context.out("plots/value_by_position.csv"), BY_POSITION, measured.pop("by_position"))
    metrics = {
        "start_from": config.pretrain_critic.start_from,
        "num_rollouts": len(rollouts),
        "num_ungraded": left_out,
        "num_steps": curve[-1]["step"],
        "best_step": min(curve, key=lambda row: row["held_out_value_loss"])["step"],
        "value_loss_start": curve[0]["held_out_value_loss"],
        "value_loss_end": measured.pop("value_loss"),
        "gate_passed": not reasons,
        "gate_reasons": reasons,
        "value_head_sha256": verdict["value_head_sha256"],
        **measured,
    }
    write_json_atomic(context.out("metrics/pretrain_critic.json"), metrics)
    context.say(
        f"held-out explained variance {_show(metrics['explained_variance'])}, value bias "
        f"{_show(metrics['value_bias'])}, gate {'passed' if not reasons else 'FAILED: ' + '; '.join(reasons)}"
    )
    return metrics


def pretrain(
    context: StageContext, section: PretrainCriticConfig, rollouts: Sequence[Rollout], folder: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(curve, measures) of a value pretraining in `folder`, whose `model/` is the critic. Goes on where an
    earlier attempt was. Raises as `run` does."""
    import json

    from training.finetune.critic import CriticJob
    from training.finetune.critic import run as run_critic
    from training.finetune.distributed import run_job
    from training.finetune.trainer import read_history

    job = CriticJob(
        stage=context.stage,
        folder=folder,
        runtime=context.runtime,
        trunk=trunk(section.start_from).resolve(),
        config=section,
        gamma=context.config.train.gae.gamma,
        seed=context.config.seed,
        rollouts=tuple(rollouts),
    )
    run_job(run_critic, job, context.progress)
    measured = json.loads((folder / "measured.json").read_text(encoding="utf-8"))
    return list(curve_rows(read_history(folder))), measured


def trunk(start_from: str) -> Path:
    """The folder whose weights the critic starts with. Raises CheckpointError if there is no reward model."""
    if start_from == "sft":
        return Path("models/sft")
    folder = Path("models/reward_model")
    if (folder / "unused.json").is_file():
        raise CheckpointError(f"{folder}: holds no reward model; run `dvc repro reward_model`")
    return folder


def curve_rows(history: Sequence[Mapping[str, float]]) -> Iterator[dict[str, Any]]:
    """One row an evaluation, with the mean training loss of the steps since the one before.

    The first row is the critic before its first update; its training loss is that of the first batch.
    """
    losses: list[float] = [entry["loss"] for entry in history if "loss" in entry][:1]
    for entry in history:
        if "loss" in entry:
            losses.append(entry["loss"])
        elif "eval_value_loss" in entry:
            yield {
                "step": int(entry["step"]),
                "value_loss": sum(losses) / len(losses),
                "held_out_value_loss": entry["eval_value_loss"],
                "explained_variance": entry["eval_explained_variance"],
                "value_bias": entry["eval_value_bias"],
            }
            losses = []


def _show(number: float | None) -> str:
    return "undefined" if number is None else f"{number:+.3f}"
