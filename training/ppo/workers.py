"""verl's actor and critic workers on a CPU."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
import verl.utils.model as verl_model
from torch.distributed.fsdp import CPUOffloadPolicy
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

import training.ppo.replica  # noqa: F401  registers the rollout engine `torch` in worker processes


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class CpuLanguageModelEngine(FSDPEngineWithLMHead):
    """verl's own engine, registered for the device `cpu`."""


def fused_log_probs(
    logits: torch.Tensor, labels: torch.Tensor, inplace_backward: bool = True
) -> torch.Tensor:
    """Log-probability of each label: logits `[..., V]`, labels `[...]`, out `[...]`.

    verl's CPU fallback walks the tokens in Python, with a graph node each.
    """
    flat = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), reduction="none")
    return -flat.view(labels.shape)


transformer_impl.logprobs_from_logits = fused_log_probs
# verl keeps a reference model in pinned memory, which torch cannot have without an accelerator
transformer_impl.CPUOffloadPolicy = lambda pin_memory: CPUOffloadPolicy(pin_memory=False)


@EngineRegistry.register(model_type="value_model", backend=["fsdp", "fsdp2"], device="cpu")
class CpuValueModelEngine(FSDPEngineWithValueHead):
    """Loads the critic without flash attention. That its head is there is known before the run starts
    (critic_start.py)."""

    def _build_module(self) -> Any:
        from transformers import AutoModelForTokenClassification

        attention = self.model_config.override_config.get("attn_implementation", "sdpa")

        def load(local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool) -> Any:
            return AutoModelForTokenClassification.from_pretrained(
                local_path,
                dtype=torch_dtype,
                config=model_config,
                trust_remote_code=trust_remote_code,
                attn_implementation=attention,
            )

        original, verl_model.load_valuehead_model = verl_model.load_valuehead_model, load
        try:
            return super()._build_module()
        finally:
            verl_model.load_valuehead_model = original


def _join_gloo() -> None:
    """verl would ask for the backend "cpu:gloo,cpu:gloo", which torch refuses as a duplicate."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if not dist.is_initialized():
        dist.init_process_group(
            "gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])
        )


class CpuTrainingWorker(TrainingWorker):
    def __init__(self, config: Any) -> None:
        _join_gloo()
        super().__init__(config)


class CpuActorRolloutRefWorker(ActorRolloutRefWorker):
    actor_worker_cls = CpuTrainingWorker
    ref_worker_cls = CpuTrainingWorker
