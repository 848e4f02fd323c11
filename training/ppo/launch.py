"""Start Ray, run the trainer in it, and turn its failures into ours. Imports neither torch nor verl."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from training.ppo import checkpoints
from training.ppo.critic_start import critic_start
from training.ppo.log_follower import LogFollower
from training.ppo.metrics_log import truncate_metrics
from training.ppo.verl_config import RunPaths, verl_settings
from training.ray_session import ray_session
from vcppo.checkpoints import newest_complete
from vcppo.config import Config, Runtime
from vcppo.errors import InfrastructureError, OutOfMemoryError, VcppoError

TRAINER_CPUS = 4
"""Logical CPUs that Ray needs for the runner, TransferQueue and servers beside the workers (they share the
cores)."""
CPUS_PER_WORKER = 3


@dataclass(frozen=True)
class TrainingResult:
    last_step: int
    resumed_from: int | None
    checkpoint: Path
    """The last step's complete checkpoint."""


def train(config: Config, runtime: Runtime, paths: RunPaths, fingerprint: str) -> TrainingResult:
    """Run (or resume) VC-PPO training to its last step.

    Raises:
        ConfigurationError: sizes or extra verl keys do not fit.
        CheckpointError: the newest checkpoint belongs to another configuration, or the critic's start has no
            value head.
        InfrastructureError: a process or node died; run again to resume.
        OutOfMemoryError: a process was ended for memory.
        DivergenceError: a guard stopped the run (each guard has its own subclass); guard.json in the work
            directory holds the evidence.
        VcppoError: the trainer failed otherwise, or ended before its last step.
    """
    newest = newest_complete(paths.checkpoints, checkpoints.PREFIX)
    if newest:
        checkpoints.check_fingerprint(newest[1], fingerprint)
    resumed_step = newest[0] if newest else 0
    print(
        f"[train] resuming from step {resumed_step}, {newest[1]}" if newest else "[train] from step 0",
        flush=True,
    )
    if resumed_step < config.train.num_steps:
        paths = replace(paths, critic=critic_start(config, paths))
        truncate_metrics(paths.metrics, resumed_step)
        paths.guard.unlink(missing_ok=True)  # of an earlier attempt
        settings = verl_settings(
            config, runtime, paths, resume_from=newest[1] if newest else None, fingerprint=fingerprint
        )
        last_step = _run(compose(settings), runtime, paths, fingerprint)
        if last_step != config.train.num_steps:
            raise VcppoError(f"training ended at step {last_step}, asked for were {config.train.num_steps}")
        newest = newest_complete(paths.checkpoints, checkpoints.PREFIX)
    if newest is None or newest[0] != config.train.num_steps:
        raise VcppoError(
            f"{paths.checkpoints}: no complete checkpoint of step {config.train.num_steps} was written"
        )
    return TrainingResult(newest[0], resumed_step or None, newest[1])


def compose(settings: Mapping[str, Any]) -> Any:
    """verl's default configuration with our keys set, as OmegaConf."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf, open_dict

    spec = importlib.util.find_spec("verl")  # finds it without importing it
    assert spec is not None and spec.submodule_search_locations is not None
    directory = Path(spec.submodule_search_locations[0]) / "trainer" / "config"
    with initialize_config_dir(str(directory), version_base=None):
        config = hydra_compose("ppo_trainer")
    with open_dict(config):
        for key, value in settings.items():
            OmegaConf.update(config, key, value, merge=True, force_add=True)
    return config


def worker_environment(runtime: Runtime, paths: RunPaths, fingerprint: str) -> dict[str, str]:
    """Environment of the trainer's processes."""
    variables = {
        "TRANSFER_QUEUE_ENABLE": "1",
        "TQ_NUM_THREADS": "2",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "WANDB_MODE": runtime.wandb_mode,
        "WANDB_DIR": str(paths.work),
        # one W&B run for all attempts of a fingerprint, one offline segment each
        "WANDB_RUN_ID": fingerprint,
        "WANDB_RESUME": "allow",
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_SILENT": "true",
    }
    if runtime.device == "cpu":
        variables |= {"VERL_PLATFORM": "cpu", "VERL_USE_EXTERNAL_MODULES": "training.ppo.cpu_platform"}
    return variables


def _run(verl_config: Any, runtime: Runtime, paths: RunPaths, fingerprint: str) -> int:
    workers = runtime.num_nodes * runtime.devices_per_node
    environment = worker_environment(runtime, paths, fingerprint)
    # on a CPU, Ray's "GPU" counts worker slots (training.ppo.cpu_platform); on a GPU, Ray finds the devices
    slots = workers if runtime.device == "cpu" else runtime.devices_per_node
    num_cpus = TRAINER_CPUS + CPUS_PER_WORKER * workers
    with (
        LogFollower(paths.log) as follower,
        ray_session(runtime, num_cpus=num_cpus, num_gpus=slots, env=environment),
    ):
        import ray
        from ray.exceptions import OutOfMemoryError as RayOutOfMemoryError
        from ray.exceptions import RayActorError, RayTaskError, WorkerCrashedError

        from training.ppo.runner import Runner

        runner = ray.remote(Runner).options(num_cpus=0).remote()
        try:
            return ray.get(runner.run.remote(verl_config, str(paths.log)))
        except RayOutOfMemoryError as error:
            follower.show_tail()
            raise out_of_memory() from error
        except (RayActorError, WorkerCrashedError) as error:
            follower.show_tail()
            raise InfrastructureError(
                f"a training process died: {_last_line(error)}; run again to resume"
            ) from error
        except RayTaskError as error:
            follower.show_tail()
            raise _cause(error) from error


def _cause(error: Any) -> Exception:
    """Our own exception from inside the runner, or a classified one."""
    from ray.exceptions import RayActorError

    cause = error.cause
    if isinstance(cause, VcppoError):
        return cause
    if "OutOfMemoryError" in str(error) or "out of memory" in str(error):
        return out_of_memory()
    if (
        isinstance(cause, RayActorError)
        or "ActorDiedError" in str(error)
        or "ActorUnavailableError" in str(error)
    ):
        return InfrastructureError(f"a training process died: {_last_line(error)}; run again to resume")
    return VcppoError(f"the trainer failed: {_last_line(error)}")


def out_of_memory() -> OutOfMemoryError:
    return OutOfMemoryError(
        "the machine, or the GPU, ran out of memory and a training process was ended. Checkpoints are kept. "
        "Make room, or set fewer tokens a pass (VCPPO_MICRO_BATCH_TOKENS), fewer responses decoded side by "
        "side (VCPPO_ROLLOUT_BATCH_SIZE) or more devices; VCPPO_ALLOW_LAYOUT_CHANGE=1 lets the run go on so"
    )


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
