"""The typed configuration to verl's: one pure function. Imports neither torch nor verl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.ppo.verl_networks import actor_settings, critic_settings, micro_batch_size
from vcppo.config import Config, Runtime
from vcppo.errors import ConfigurationError

MODE = "vcppo"
AGENT_LOOPS = Path(__file__).with_name("agent_loops.yaml")
"""Read by verl's agent loop workers on every node: where the package lies is the same there."""


@dataclass(frozen=True)
class RunPaths:
    """Where a training run reads and writes. Absolute."""

    policy: Path
    critic: Path | None
    train_file: Path
    work: Path
    """Checkpoints, rollouts and metrics of the run."""

    @property
    def checkpoints(self) -> Path:
        return self.work / "checkpoints"

    @property
    def rollouts(self) -> Path:
        return self.work / "rollouts"

    @property
    def log(self) -> Path:
        return self.work / "trainer.log"

    @property
    def guard(self) -> Path:
        """Failure record of the guard that stopped the last attempt, if one did."""
        return self.work / "guard.json"

    @property
    def metrics(self) -> Path:
        return self.work / "metrics.jsonl"


def verl_settings(
    config: Config,
    runtime: Runtime,
    paths: RunPaths,
    *,
    resume_from: Path | None = None,
    fingerprint: str = "",
) -> dict[str, Any]:
    """verl's keys (dotted) and their values for one run.

    Raises ConfigurationError when `train.verl` sets a key that this function owns, or sizes do not fit the
    workers.
    """
    _check_sizes(config, runtime)
    settings = (
        _trainer(config, runtime, paths, resume_from)
        | _data(config, runtime, paths)
        | _algorithm(config)
        | actor_settings(config, runtime, paths.policy)
        | _rollout(config, runtime)
        | critic_settings(config, runtime, paths.critic or paths.policy, paths.policy)
        | _own(config, runtime, paths, fingerprint)
    )
    _refuse_owned(settings, config.train.verl)
    return settings | config.train.verl


def _refuse_owned(settings: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    """verl's other keys may be set by `train.verl`; ours, what lies below them or above them may not."""
    for key, value in extra.items():
        owned = [
            own for own in settings if own == key or own.startswith(f"{key}.") or key.startswith(f"{own}.")
        ]
        if owned:
            raise ConfigurationError(
                f"train.verl: {key!r} (value {value!r}) is set by this product "
                f"({', '.join(sorted(owned)[:3])}); change the key of the typed configuration instead"
            )


def _check_sizes(config: Config, runtime: Runtime) -> None:
    train, workers = config.train, runtime.num_nodes * runtime.devices_per_node
    for name, mini in (("actor", train.actor.mini_batch_size), ("critic", train.critic.mini_batch_size)):
        if mini % (train.samples_per_prompt * workers):
            raise ConfigurationError(
                f"train.{name}.mini_batch_size: got {mini}, allowed are multiples of samples_per_prompt "
                f"({train.samples_per_prompt}) x workers "
                f"({workers}; VCPPO_NUM_NODES x VCPPO_DEVICES_PER_NODE)"
            )
    if runtime.device == "cpu" and runtime.rollout_engine != "torch":
        raise ConfigurationError("VCPPO_ROLLOUT_ENGINE: got 'vllm', allowed on a CPU is 'torch'")


def _trainer(config: Config, runtime: Runtime, paths: RunPaths, resume_from: Path | None) -> dict[str, Any]:
    loggers = [] if runtime.wandb_mode == "disabled" else ["wandb"]
    return {
        "trainer.device": runtime.device,
        "trainer.nnodes": runtime.num_nodes,
        "trainer.n_gpus_per_node": runtime.devices_per_node,
        "trainer.v1.trainer_mode": MODE,
        f"trainer.v1.{MODE}": {},
        "trainer.v1.sampler.custom_sampler.path": "pkg://training.ppo.replay_buffer",
        "trainer.v1.sampler.custom_sampler.name": "OrderedReplayBuffer",
        "trainer.project_name": "vcppo",
        "trainer.experiment_name": f"{config.profile}-{config.train.algorithm}",
        "trainer.logger": loggers,
        "trainer.default_local_dir": str(paths.checkpoints),
        "trainer.rollout_data_dir": str(paths.rollouts),
        "trainer.total_training_steps": config.train.num_steps,
        "trainer.total_epochs": 1_000_000,  # num_steps ends the run
        "trainer.val_before_train": False,  # the evaluate stage measures, with error bars
        "trainer.test_freq": -1,
        "trainer.save_freq": config.train.save_every_steps,
        # training.ppo.checkpoints deletes, after the new one is verified
        "trainer.max_actor_ckpt_to_keep": None,
        "trainer.max_critic_ckpt_to_keep": None,
        # verl counts the first step of the actor, we the steps without it
        "trainer.critic_warmup": 0
        if config.train.algorithm == "grpo"
        else config.train.critic.warmup_steps + 1,
        "trainer.resume_mode": "resume_path" if resume_from else "disable",
        "trainer.resume_from_path": str(resume_from) if resume_from else None,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": runtime.num_nodes,
    }


def _data(config: Config, runtime: Runtime, paths: RunPaths) -> dict[str, Any]:
    return {
        "data.train_files": str(paths.train_file),
        "data.val_files": str(paths.train_file),
        "data.train_batch_size": config.train.prompts_per_step,
        "data.max_prompt_length": config.data.max_prompt_tokens,
        "data.max_response_length": config.data.max_response_tokens,
        "data.dataloader_num_workers": 0,
        "data.seed": config.seed,
        "data.shuffle": True,
        "data.validation_shuffle": False,
        "data.custom_cls.path": "pkg://training.ppo.dataset",
        "data.custom_cls.name": "LeanDataset",
        # the batch agent loop scores by itself; verl's own loops need a worker
        "reward.num_workers": 0 if runtime.rollout_engine == "torch" else 8,
        "reward.custom_reward_function.path": "pkg://training.ppo.reward",
        "reward.custom_reward_function.name": "compute_score",
        "reward.custom_reward_function.reward_kwargs": config.train.reward.model_dump(),
    }


def _algorithm(config: Config) -> dict[str, Any]:
    gae = config.train.gae
    grpo = config.train.algorithm == "grpo"
    return {
        "algorithm.adv_estimator": "grpo" if grpo else "gae",
        "algorithm.gamma": gae.gamma,
        # our trainer reads vcppo.gae; verl's single lambda is only shown in its printout
        "algorithm.lam": gae.lam_actor if isinstance(gae.lam_actor, float) else 1.0,
        # sampling and training run the same float32 weights: the sampler's log-probs are the old ones
        "algorithm.rollout_correction.bypass_mode": True,
    }


def _rollout(config: Config, runtime: Runtime) -> dict[str, Any]:
    train, torch_engine = config.train, runtime.rollout_engine == "torch"
    prefix = "actor_rollout_ref.rollout"
    settings = {
        f"{prefix}.name": runtime.rollout_engine,
        f"{prefix}.n": train.samples_per_prompt,
        f"{prefix}.seed": config.seed,
        f"{prefix}.dtype": "float32" if runtime.device == "cpu" else "bfloat16",
        f"{prefix}.temperature": train.sampling.temperature,
        f"{prefix}.top_p": train.sampling.top_p,
        f"{prefix}.top_k": train.sampling.top_k or -1,
        f"{prefix}.tensor_model_parallel_size": runtime.tensor_parallel_size,
        f"{prefix}.max_num_seqs": runtime.rollout_batch_size,
        f"{prefix}.log_prob_micro_batch_size_per_gpu": micro_batch_size(
            train.actor.mini_batch_size, config, runtime
        ),
        f"{prefix}.log_prob_use_dynamic_bsz": False,
        f"{prefix}.load_format": "auto",
        f"{prefix}.calculate_log_probs": True,
        f"{prefix}.agent.num_workers": 1 if torch_engine else 8,
    }
    if torch_engine:
        settings[f"{prefix}.agent.agent_loop_manager_class"] = "training.ppo.agent_loop.BatchAgentLoopManager"
    else:
        settings[f"{prefix}.agent.agent_loop_config_path"] = str(AGENT_LOOPS)
        settings[f"{prefix}.agent.default_agent_loop"] = "vcppo_single_turn"
    return settings


def _own(config: Config, runtime: Runtime, paths: RunPaths, fingerprint: str) -> dict[str, Any]:
    """What our trainer and agent loop read, under a key of our own."""
    return {
        "vcppo.gae": config.train.gae.model_dump(),
        "vcppo.reward": config.train.reward.model_dump(),
        "vcppo.guards": config.train.guards.model_dump(),
        "vcppo.stopping": config.train.stopping.model_dump() if config.train.stopping else None,
        "vcppo.language_model_loss": config.train.actor.language_model_loss_coefficient,
        "vcppo.metrics_path": str(paths.metrics),
        "vcppo.guard_path": str(paths.guard),
        "vcppo.keep_checkpoints": config.train.keep_checkpoints,
        "vcppo.checkpoint_facts": {
            "fingerprint": fingerprint,
            "world_size": runtime.num_nodes * runtime.devices_per_node,
            "layout": runtime.layout(),
        },
    }
