"""Where PPO's critic starts: a folder whose value head is known to be there before anything is loaded."""

from __future__ import annotations

from pathlib import Path

from training.models.seeds import derive_seed
from training.ppo.verl_config import RunPaths
from vcppo.config import Config


def critic_start(config: Config, paths: RunPaths) -> Path | None:
    """The folder that the critic is loaded from; None for GRPO, which has none.

    Without a folder in `paths` it is the SFT policy's trunk, with a fresh head that is a function of the
    seed. The head's hash goes to the log: it tells a trained head from a random one.

    Raises CheckpointError if the folder has no value head (verl would draw one with no more than a warning),
    or one with other than one label.
    """
    if config.train.algorithm == "grpo":
        return None
    from training.models.value import value_head_sha256
    from training.models.value_start import link_value_model

    start = paths.critic
    if start is None:
        seed = derive_seed(config.seed, "critic head")
        start = link_value_model(paths.policy, paths.work / "critic_start", seed)
    print(f"[train] critic from {start}, value head {value_head_sha256(start)[:16]}", flush=True)
    return start
