"""Small jobs of each kind. `python -m tests.training.finetune.small KIND FOLDER KILL` runs one and kills
itself: KILL is `step:N` (after step N's update, before anything of it is saved), `save:N` (all files of
checkpoint N are written, its manifest is not) or `end` (trained to the end, nothing published yet)."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

from training.finetune import critic, reward_model, sft
from training.finetune.callbacks import Progress
from training.finetune.rollouts import Rollout
from training.models import build_initial_policy, save_policy
from vcppo.config import PretrainCriticConfig, RewardModelConfig, Runtime, TinyModel
from vcppo.config.stages import OptimizerConfig, SftConfig

MODEL = TinyModel(hidden_size=16, intermediate_size=32, num_layers=1, num_heads=2, num_kv_heads=2)
OPTIMIZER = OptimizerConfig(learning_rate=0.01, warmup_steps=3, weight_decay=0.1)
RUNNERS: dict[str, Any] = {"sft": sft.run, "critic": critic.run, "reward_model": reward_model.run}


def write_policy(folder: Path) -> None:
    save_policy(*build_initial_policy(MODEL, seed=1), folder)


def make_rollouts(num_prompts: int = 24, samples: int = 4, seed: int = 1) -> list[Rollout]:
    """Responses whose first token tells right from wrong; every seventh was cut at the length limit."""
    generator = random.Random(seed)
    rollouts = []
    for prompt in range(num_prompts):
        prompt_ids = tuple(generator.randrange(30, 40) for _ in range(generator.randrange(3, 7)))
        for sample in range(samples):
            right = generator.random() < 0.5
            finished = (prompt * samples + sample) % 7 != 0
            first = 50 if right else 60
            body = (first, *(generator.randrange(70, 90) for _ in range(generator.randrange(1, 9))))
            rollouts.append(
                Rollout(
                    prompt=f"p{prompt}",
                    sample=sample,
                    prompt_ids=prompt_ids,
                    response_ids=(*body, 2) if finished else body,
                    score=1.0 if right and finished else -1.0,
                    right=right and finished,
                    finished=finished,
                )
            )
    return rollouts


def make_traces() -> tuple[sft.Trace, ...]:
    rollouts = make_rollouts(num_prompts=10)
    return tuple(sft.Trace(r.prompt_ids + r.response_ids, len(r.prompt_ids)) for r in rollouts)


def make_job(kind: str, folder: Path, policy: Path, runtime: Runtime | None = None, **values: Any) -> Any:
    """SFT: 40 traces, 5 steps an epoch, 12 steps, saved every 2. Critic: 11 steps an epoch, evaluated
    every 2.
    """
    runtime = runtime or Runtime()
    rollouts = tuple(make_rollouts())
    if kind == "sft":
        config = SftConfig(
            **{
                "optimizer": OPTIMIZER,
                "batch_size": 8,
                "num_epochs": 2.4,
                "save_every_steps": 2,
                **values,
            }
        )
        return sft.SftJob("sft", folder, runtime, MODEL, config, 1, make_traces())
    if kind == "critic":
        section = {
            "optimizer": OPTIMIZER,
            "batch_size": 8,
            "max_epochs": 2,
            "evaluations_per_epoch": 5,
            **values,
        }
        return critic.CriticJob(
            "critic", folder, runtime, policy, PretrainCriticConfig(**section), 1.0, 1, rollouts
        )
    section = {"optimizer": OPTIMIZER, "batch_size": 8, "num_epochs": 2, **values}
    return reward_model.RewardModelJob(
        "reward_model", folder, runtime, policy, RewardModelConfig(**section), 1, rollouts
    )


def ignore(done: int, total: int, what: str) -> None:
    """A progress that shows nothing."""


def kill_at(when: str) -> Progress:
    """A progress that ends this process as kill -9 would."""
    name, _, number = when.partition(":")

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if name == "save":
        from training.finetune import callbacks

        commit = callbacks.commit

        def commit_or_die(directory: Path) -> None:
            if directory.name == f"{callbacks.PREFIX}{number}":
                die()
            commit(directory)

        callbacks.commit = commit_or_die
    if name == "end":
        from training.finetune import trainer

        trainer.write_json_atomic = lambda path, value: die()
    return lambda done, total, what: die() if name == "step" and done == int(number) else None


if __name__ == "__main__":
    from training.finetune.distributed import run_job

    kind, where, when = sys.argv[1:]
    root = Path(where)
    if not (root / "policy").exists():
        write_policy(root / "policy")
    run_job(RUNNERS[kind], make_job(kind, root / "job", root / "policy"), kill_at(when))
