"""Which runs a study asks for, and what each starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcppo.config import AblationRow, Config, evaluated_steps, row_config
from vcppo.errors import CheckpointError
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


def critic_path(config: Config, row: AblationRow) -> Path | None:
    """Where the critic of a row comes from. Raises CheckpointError if no reward model was trained for it."""
    if not _has_critic(config, row):
        return None
    if row.pretraining_share > 0:
        return CRITICS / share_name(row.pretraining_share)
    if config.pretrain_critic.start_from == "sft":
        return None
    folder = Path("models/reward_model")
    if (folder / "unused.json").is_file():
        raise CheckpointError(f"{folder}: holds no reward model; run `dvc repro reward_model`")
    return folder


def share_name(share: float) -> str:
    """Folder of the critic that was pretrained so long: `share-0.25`."""
    return f"share-{share:g}"


def plan(config: Config, code: Mapping[str, str]) -> list[PlannedRun]:
    """Every run, seed by seed: the first seeds of all rows come before the second ones.

    code: hashes of the code that a run's result depends on. With the run's own settings, policy, critic and
    problems they make its fingerprint: a row that is added later leaves the others' results valid.
    """
    assert config.ablation is not None
    hashes: dict[Path, str] = {}

    def hash_of(path: Path) -> str:
        if path not in hashes:
            hashes[path] = sha256_path(path)
        return hashes[path]

    runs = []
    for row in config.ablation.rows:
        critic = critic_path(config, row)
        inputs = dict(code)
        for path in (POLICY, PREPARED, *([critic] if critic else [])):
            inputs[str(path)] = hash_of(path)
        for seed_index in range(row.num_seeds):
            changed = row_config(config, row, seed_index)
            steps = tuple(evaluated_steps(config, changed.train.num_steps))
            parameters = {**_identity(changed), "evaluated_steps": steps}
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


def _has_critic(config: Config, row: AblationRow) -> bool:
    return row_config(config, row, 0).train.algorithm != "grpo"
