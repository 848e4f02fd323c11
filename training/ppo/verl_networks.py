"""verl's keys of the three networks: actor, reference policy, critic. Imports neither torch nor verl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vcppo.config import Config, Runtime
from vcppo.config.base import OptimizerConfig
from vcppo.config.train import ActorConfig

NO_VALUE_CLIP = 1e9
"""verl always clips the value; a range that no value leaves gives the plain 0.5 (V - R)^2."""


def actor_settings(config: Config, runtime: Runtime, policy: Path) -> dict[str, Any]:
    """The actor, which starts from the folder `policy`, and the reference policy beside it."""
    train, actor, cpu = config.train, config.train.actor, runtime.device == "cpu"
    prefix = "actor_rollout_ref.actor"
    return {
        "actor_rollout_ref.model.path": str(policy),
        "actor_rollout_ref.model.use_remove_padding": not cpu,
        "actor_rollout_ref.model.enable_gradient_checkpointing": not cpu,
        "actor_rollout_ref.model.override_config.attn_implementation": "sdpa" if cpu else "flash_attention_2",
        f"{prefix}.strategy": "fsdp2",
        f"{prefix}.use_torch_compile": False,
        f"{prefix}.fsdp_config.strategy": "fsdp2",
        f"{prefix}.fsdp_config.use_torch_compile": False,
        f"{prefix}.fsdp_config.full_determinism": cpu,
        f"{prefix}.fsdp_config.seed": config.seed,
        f"{prefix}.fsdp_config.mixed_precision": _precision(runtime),
        f"{prefix}.use_dynamic_bsz": False,
        # verl counts prompts here and multiplies by the samples of each
        f"{prefix}.ppo_mini_batch_size": actor.mini_batch_size // train.samples_per_prompt,
        f"{prefix}.ppo_micro_batch_size_per_gpu": micro_batch_size(actor.mini_batch_size, config, runtime),
        f"{prefix}.ppo_epochs": actor.epochs,
        f"{prefix}.shuffle": True,
        f"{prefix}.data_loader_seed": config.seed,
        f"{prefix}.clip_ratio": actor.clip_ratio_low,
        f"{prefix}.clip_ratio_low": actor.clip_ratio_low,
        f"{prefix}.clip_ratio_high": actor.clip_ratio_high,
        f"{prefix}.loss_agg_mode": "token-mean"
        if actor.loss_aggregation == "token"
        else "seq-mean-token-mean",
        f"{prefix}.entropy_coeff": actor.entropy_coefficient,
        f"{prefix}.calculate_entropy": True,
        # verl loads the reference model for its KL loss only; with weight 0 that only measures
        f"{prefix}.use_kl_loss": actor.kl_coefficient > 0 or actor.measure_kl_to_sft,
        f"{prefix}.kl_loss_coef": actor.kl_coefficient,
        f"{prefix}.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        **_optimizer(f"{prefix}.optim", actor.optimizer),
        **_language_model_loss(actor),
        **_reference(config, runtime),
    }


def critic_settings(config: Config, runtime: Runtime, start: Path, policy: Path) -> dict[str, Any]:
    """The critic, which starts from the folder `start` and reads with the policy's tokenizer."""
    train, critic, cpu = config.train, config.train.critic, runtime.device == "cpu"
    micro = micro_batch_size(critic.mini_batch_size, config, runtime)
    return {
        "critic.strategy": "fsdp2",
        "critic.fsdp.strategy": "fsdp2",
        "critic.fsdp.use_torch_compile": False,
        "critic.fsdp.full_determinism": cpu,
        "critic.fsdp.seed": config.seed,
        "critic.fsdp.mixed_precision": _precision(runtime),
        "critic.model.path": str(start),
        "critic.model.tokenizer_path": str(policy),
        "critic.model.use_remove_padding": not cpu,
        "critic.model.enable_gradient_checkpointing": not cpu,
        "critic.model.override_config.attn_implementation": "sdpa" if cpu else "flash_attention_2",
        "critic.use_dynamic_bsz": False,
        "critic.ppo_mini_batch_size": critic.mini_batch_size // train.samples_per_prompt,
        "critic.ppo_micro_batch_size_per_gpu": micro,
        "critic.forward_micro_batch_size_per_gpu": micro,
        # the V1 trainer reads these three and not the ones above
        "critic.fsdp.use_dynamic_bsz": False,
        "critic.fsdp.micro_batch_size_per_gpu": micro,
        "critic.fsdp.infer_micro_batch_size_per_gpu": micro,
        "critic.ppo_epochs": critic.epochs,
        "critic.shuffle": True,
        "critic.data_loader_seed": config.seed,
        "critic.cliprange_value": critic.value_clip or NO_VALUE_CLIP,
        "critic.loss_agg_mode": "token-mean",
        "critic.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        **_optimizer("critic.optim", critic.optimizer),
    }


def micro_batch_size(mini_batch_size: int, config: Config, runtime: Runtime) -> int:
    """Responses of a forward pass and device: the largest divisor of its share of a mini-batch within
    `micro_batch_size` responses and `micro_batch_tokens` tokens, should all be of the greatest length."""
    share = mini_batch_size // (runtime.num_nodes * runtime.devices_per_node)
    longest = config.data.max_prompt_tokens + config.data.max_response_tokens
    limit = min(runtime.micro_batch_size, max(1, runtime.micro_batch_tokens // longest))
    return max(size for size in range(1, min(limit, share) + 1) if share % size == 0)


def _reference(config: Config, runtime: Runtime) -> dict[str, Any]:
    """The frozen SFT policy beside the actor; verl loads it only when the actor's KL loss is on."""
    prefix = "actor_rollout_ref.ref"
    return {
        f"{prefix}.strategy": "fsdp2",
        f"{prefix}.fsdp_config.strategy": "fsdp2",
        f"{prefix}.fsdp_config.use_torch_compile": False,
        f"{prefix}.fsdp_config.full_determinism": runtime.device == "cpu",
        f"{prefix}.fsdp_config.seed": config.seed,
        f"{prefix}.fsdp_config.mixed_precision": _precision(runtime),
        f"{prefix}.log_prob_micro_batch_size_per_gpu": micro_batch_size(
            config.train.actor.mini_batch_size, config, runtime
        ),
        f"{prefix}.log_prob_use_dynamic_bsz": False,
    }


def _language_model_loss(actor: ActorConfig) -> dict[str, Any]:
    """The policy loss of training.ppo.policy_loss, which worker processes import as they load the model."""
    if actor.language_model_loss_coefficient == 0:
        return {}
    return {
        "actor_rollout_ref.actor.policy_loss.loss_mode": "clip_and_language_model",
        "actor_rollout_ref.model.external_lib": "training.ppo.policy_loss",
    }


def _optimizer(prefix: str, optimizer: OptimizerConfig) -> dict[str, Any]:
    return {
        f"{prefix}.lr": optimizer.learning_rate,
        f"{prefix}.lr_warmup_steps": optimizer.warmup_steps,
        f"{prefix}.weight_decay": optimizer.weight_decay,
        f"{prefix}.clip_grad": optimizer.max_grad_norm,
    }


def _precision(runtime: Runtime) -> dict[str, str]:
    dtype = "fp32" if runtime.device == "cpu" else "bf16"
    return {"param_dtype": dtype, "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
