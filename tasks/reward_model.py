"""Stage reward_model: trained only when a critic starts from it, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.stage import StageContext
from vcppo.config import Config
from vcppo.files import publish, write_json_atomic

OUTPUT = "models/reward_model"


def run(context: StageContext) -> Mapping[str, Any]:
    """Bradley-Terry on pairs of the SFT policy's rollouts; `unused.json` when nothing starts from it.

    Raises DataError: the rollouts give no pair, or no spread of rewards.
    """
    metrics = train(context) if is_needed(context.config) else skip(context)
    write_json_atomic(context.out("metrics/reward_model.json"), metrics)
    return metrics


def is_needed(config: Config) -> bool:
    """Whether value pretraining or PPO takes the reward model as its critic."""
    return "reward_model" in (config.pretrain_critic.start_from, config.train.critic_start)


def skip(context: StageContext) -> dict[str, Any]:
    """Say why there is no model."""
    why = "neither pretrain_critic.start_from nor train.critic_start is reward_model"
    write_json_atomic(context.out(OUTPUT) / "unused.json", {"reason": why})
    context.say(f"not needed: {why}")
    return {"trained": False}


def train(context: StageContext) -> dict[str, Any]:
    """Train on transformers' Trainer; resumes from the work directory."""
    import json

    from training.finetune.distributed import run_job
    from training.finetune.pairs import choose_rollouts
    from training.finetune.reward_model import RewardModelJob
    from training.finetune.reward_model import run as run_reward_model
    from training.finetune.rollouts import load_rollouts
    from training.finetune.trainer import read_history
    from training.models import value_head_sha256

    section = context.config.reward_model
    rollouts, left_out = load_rollouts(Path("data/rollouts"))
    chosen = choose_rollouts(rollouts, section.num_prompts, section.samples_per_prompt)
    context.say(f"{len(chosen)} rollouts of {len({r.prompt for r in chosen})} prompts")
    folder = (context.work / "reward_model").resolve()
    job = RewardModelJob(
        stage=context.stage,
        folder=folder,
        runtime=context.runtime,
        trunk=Path("models/sft").resolve(),
        config=section,
        seed=context.config.seed,
        rollouts=tuple(chosen),
    )
    run_job(run_reward_model, job, context.progress)
    losses = [entry["loss"] for entry in read_history(folder) if "loss" in entry]
    publish(folder / "model", context.out(OUTPUT), link=True)
    return {
        "trained": True,
        "num_rollouts": len(chosen),
        "num_ungraded": left_out,
        "num_steps": len(losses),
        "loss_start": losses[0],
        "loss_end": losses[-1],
        "value_head_sha256": value_head_sha256(folder / "model"),
        **json.loads((folder / "measured.json").read_text(encoding="utf-8")),
    }
