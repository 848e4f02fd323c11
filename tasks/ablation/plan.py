"""Which runs a study asks for, and what each starts from."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.pretrain_critic import trunk
from vcppo.config import Config, evaluated_steps, row_config, study_of
from vcppo.files import sha256_path
from vcppo.workdir import fingerprint

POLICY = Path("models/sft")
CRITICS = Path("models/ablation_critics")
PREPARED = Path("data/prepared")


@dataclass(frozen=True)
class PlannedRun:
    """One row with one seed. Paths are relative to the workspace."""

    row: str
    seed_index: int
    config: Config
    critic: Path | None
    """None: the SFT policy's trunk with a fresh head, or an algorithm without critic."""
    evaluated_steps: tuple[int, ...]
    fingerprint: str

    @property
    def name(self) -> str:
        return f"{self.row}-{self.seed_index}"


def critic_path(changed: Config, pretraining_share: float) -> Path | None:
    """Where the critic of a run comes from. Raises CheckpointError if no reward model was trained for it."""
    if changed.train.algorithm == "grpo":
        return None
    if pretraining_share > 0:
        return CRITICS / share_name(pretraining_share)
    return None if changed.train.critic_start == "sft" else trunk("reward_model")


def share_name(share: float) -> str:
    """Folder of the critic that was pretrained so long: `share-0.25`."""
    return f"share-{share:g}"


def plan(config: Config, code: Mapping[str, str]) -> list[PlannedRun]:
    """Every run, seed by seed: the first seeds of all rows come before the second ones.

    code: hashes of the code that a run's result depends on. With the run's own settings, policy, critic and
    problems they make its fingerprint: a row that is added later leaves the others' results valid.
    """
    hash_of = functools.cache(sha256_path)
    runs = []
    for row in study_of(config).rows:
        for seed_index in range(row.num_seeds):
            changed = row_config(config, row, seed_index)
            critic = critic_path(changed, row.pretraining_share)
            read = (POLICY, PREPARED, *([critic] if critic else []))
            steps = tuple(evaluated_steps(config, changed.train.num_steps))
            parameters = {**_identity(changed), "evaluated_steps": steps}
            inputs = {**code, **{str(path): hash_of(path) for path in read}}
            runs.append(
                PlannedRun(
                    row=row.name,
                    seed_index=seed_index,
                    config=changed,
                    critic=critic,
                    evaluated_steps=steps,
                    fingerprint=fingerprint("ablation_run", parameters, inputs),
                )
            )
    return sorted(runs, key=lambda run: run.seed_index)


def _identity(config: Config) -> dict[str, Any]:
    values = config.model_dump(mode="json", include={"seed", "train", "evaluate"})
    values["max_tokens"] = [config.data.max_prompt_tokens, config.data.max_response_tokens]
    return values
