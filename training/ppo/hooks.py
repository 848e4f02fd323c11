"""Every private piece of verl 0.9.1 that this package relies on, in one list.

verl is pinned exactly (pyproject.toml). `tests/training/ppo/test_hooks.py` checks each entry against the
installed verl,
and that our subclasses override no underscored method which is not listed here.
"""

from __future__ import annotations

from dataclasses import dataclass

VERL_VERSION = "0.9.1"


@dataclass(frozen=True)
class Hook:
    """One private attribute: where it is, its parameters (None: not a function), and what we do with it."""

    module: str
    attribute: str
    parameters: tuple[str, ...] | None
    use: str


_BASE = "verl.trainer.ppo.v1.trainer_base"
_BUFFER = "verl.trainer.ppo.v1.replay_buffer"

HOOKS: tuple[Hook, ...] = (
    # the trainer: PPOTrainer's steps, overridden in trainer.py
    Hook(_BASE, "PPOTrainer._build_replay_buffer", ("self",), "name the mode 'sync' to the base class"),
    Hook(_BASE, "PPOTrainer._init_resource_pool_mgr", ("self",), "CPU worker classes"),
    Hook(_BASE, "PPOTrainer._submit_batch_to_rollout", ("self", "batch"), "uids from step and position"),
    Hook(
        _BASE,
        "PPOTrainer._balance_batch",
        ("self", "batch", "metrics", "logging_prefix", "keep_minibatch"),
        "order by key",
    ),
    Hook(_BASE, "PPOTrainer._get_required_batch_multiple", ("self", "dp_size"), "padding of a batch"),
    Hook(
        _BASE,
        "PPOTrainer._compute_old_log_prob",
        ("self", "batch", "metrics"),
        "fetch only the needed columns",
    ),
    Hook(_BASE, "PPOTrainer._compute_values", ("self", "batch", "metrics"), "fetch only the needed columns"),
    Hook(_BASE, "PPOTrainer._compute_advantage", ("self", "batch", "metrics"), "decoupled GAE"),
    Hook(_BASE, "PPOTrainer._update_critic", ("self", "batch", "metrics"), "fetch only the needed columns"),
    Hook(_BASE, "PPOTrainer._update_actor", ("self", "batch", "metrics"), "fetch only the needed columns"),
    Hook(
        _BASE,
        "PPOTrainer._compute_metrics",
        ("self", "batch", "metrics", "timing_raw", "global_steps", "epoch"),
        "write the step's metrics before its checkpoint",
    ),
    Hook(_BASE, "PPOTrainer._save_checkpoint", ("self",), "write rollouts and metrics before the weights"),
    Hook(
        _BASE,
        "PPOTrainer._log_rollout_data",
        ("self", "batch", "timing_raw", "rollout_data_dir"),
        "dump once a step",
    ),
    Hook(
        _BASE,
        "LLMServerManager",
        None,
        "replaced: no load balancer process when the agent loop addresses servers itself",
    ),
    Hook(
        "verl.workers.rollout.llm_server", "LLMServerManager._init_global_load_balancer", ("self",), "skipped"
    ),
    # the replay buffer, overridden in replay_buffer.py
    Hook(
        _BUFFER,
        "ReplayBuffer._select_prompt_uids",
        ("self", "partition_id", "sampleable_keys", "batch_size"),
        "order by key",
    ),
    Hook(
        _BUFFER,
        "ReplayBuffer._materialize_batch",
        ("self", "partition_id", "selected_prompt_uids", "partition_snapshot"),
        "order by key",
    ),
    # the task runner, reused without its actor wrapper in runner.py
    Hook(
        "verl.trainer.main_ppo",
        "TaskRunnerV1.__ray_actor_class__",
        None,
        "the plain class behind the Ray actor",
    ),
    # rollout registry: the weight adapter has no public way in
    Hook("verl.workers.rollout.base", "_ROLLOUT_REGISTRY", None, "('torch', 'async') -> our weight adapter"),
    # module attributes replaced in CPU workers (workers.py)
    Hook(
        "verl.workers.engine.fsdp.transformer_impl",
        "logprobs_from_logits",
        ("logits", "labels", "inplace_backward"),
        "one fused cross-entropy instead of a Python loop over tokens",
    ),
    Hook(
        "verl.workers.engine.fsdp.transformer_impl",
        "CPUOffloadPolicy",
        ("pin_memory",),
        "the reference model on a CPU: no pinned memory",
    ),
    Hook(
        "verl.utils.model",
        "load_valuehead_model",
        ("local_path", "torch_dtype", "model_config", "trust_remote_code"),
        "the attention implementation is hard-coded to flash attention",
    ),
    Hook(
        "verl.workers.engine.fsdp.transformer_impl",
        "FSDPEngineWithValueHead._build_module",
        ("self",),
        "see above",
    ),
    Hook(
        "verl.workers.engine_workers",
        "ActorRolloutRefWorker.actor_worker_cls",
        None,
        "our CPU training worker",
    ),
    Hook(
        "verl.workers.engine_workers", "ActorRolloutRefWorker.ref_worker_cls", None, "our CPU training worker"
    ),
)
