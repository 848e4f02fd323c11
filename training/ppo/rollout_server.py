"""The built-in rollout engine: a Ray actor with its own copy of the policy. No verl import: it starts 6 s
sooner."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcppo.config.base import SamplingConfig

if TYPE_CHECKING:
    import numpy as np

DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
}


@dataclass(frozen=True)
class ServerSettings:
    """Plain values, so that they travel to the actor."""

    model_path: str
    dtype: str
    seed: int
    response_length: int
    batch_size: int
    num_threads: int
    device: str


@dataclass(frozen=True)
class GeneratedBatch:
    """Responses of a batch, one after the other."""

    tokens: np.ndarray
    """int32 `[sum of lengths]`."""
    log_probs: np.ndarray
    """float32 `[sum of lengths]`."""
    lengths: list[int]
    stopped: list[bool]
    policy_version: int | None
    """Training step whose weights drew them."""


def server_name(replica_rank: int) -> str:
    """Name of the actor within the run's Ray namespace."""
    return f"rollout_server_{replica_rank}"


def server_settings(config: Any) -> ServerSettings:
    """From verl's whole configuration."""
    rollout = config.actor_rollout_ref.rollout
    return ServerSettings(
        model_path=config.actor_rollout_ref.model.path,
        dtype=DTYPES[rollout.dtype],
        seed=int(rollout.seed),
        response_length=int(rollout.response_length),
        batch_size=int(rollout.max_num_seqs),
        num_threads=int(os.environ.get("OMP_NUM_THREADS", "1")),
        device=config.trainer.device,
    )


def sampling_config(params: Mapping[str, Any]) -> SamplingConfig:
    """From verl's keys; its top_k of -1 keeps all tokens, as our 0."""
    return SamplingConfig(
        temperature=float(params.get("temperature", 1.0)),
        top_p=float(params.get("top_p", 1.0)),
        top_k=max(int(params.get("top_k", 0)), 0),
    )


class RolloutServer:
    """Samples for the trainer; receives new weights after each step."""

    def __init__(self, settings: ServerSettings, replica_rank: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from training.generation.engine import eos_token_ids
        from training.generation.sampler import TorchSampler

        torch.set_num_threads(settings.num_threads)
        self.settings, self.replica_rank = settings, replica_rank
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            settings.model_path, dtype=getattr(torch, settings.dtype), attn_implementation="sdpa"
        )
        self.model.to(settings.device).eval()
        tokenizer = AutoTokenizer.from_pretrained(settings.model_path)
        pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.sampler = TorchSampler(self.model, pad_id, eos_token_ids(self.model, tokenizer), settings.seed)
        self.policy_version: int | None = None
        self.busy = asyncio.Lock()

    async def ready(self) -> int:
        return os.getpid()

    async def generate_batch(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[str],
        max_new: int,
        sampling: SamplingConfig,
    ) -> GeneratedBatch:
        """One response a prompt. `keys` name the samples (see training.generation.noise)."""
        import torch

        async with self.busy:
            tokens, log_probs, lengths, stopped = [], [], [], []
            for start in range(0, len(prompts), self.settings.batch_size):
                part = slice(start, start + self.settings.batch_size)
                drawn = await asyncio.to_thread(
                    self.sampler.generate, prompts[part], keys[part], max_new, sampling
                )
                real = torch.arange(drawn.tokens.shape[1])[None] < drawn.lengths[:, None]
                tokens.append(drawn.tokens[real].int())
                log_probs.append(drawn.log_probs[real])
                lengths.extend(drawn.lengths.tolist())
                stopped.extend(drawn.stopped.tolist())
            return GeneratedBatch(
                torch.cat(tokens).numpy(), torch.cat(log_probs).numpy(), lengths, stopped, self.policy_version
            )

    async def generate(
        self, request_id: str, prompt_ids: Sequence[int], sampling_params: dict[str, Any], **_: Any
    ) -> Any:
        """verl's interface of one request, for its own agent loops; returns verl's TokenOutput."""
        from verl.workers.rollout.replica import TokenOutput

        limit = sampling_params.get("max_tokens") or sampling_params.get("max_new_tokens")
        drawn = await self.generate_batch(
            [list(prompt_ids)],
            [str(request_id)],
            int(limit or self.settings.response_length),
            sampling_config(sampling_params),
        )
        return TokenOutput(
            token_ids=drawn.tokens.tolist(),
            log_probs=drawn.log_probs.tolist(),
            stop_reason="completed",
            extra_fields={"global_steps": drawn.policy_version},
        )

    async def load_weights(self, named: dict[str, Any], policy_version: int | None = None) -> None:
        """Copy new weights in. Raises RuntimeError if one of ours got none: stale weights must never sample
        on."""
        async with self.busy:
            own = self.model.state_dict()
            tied = {"lm_head.weight"} if self.model.config.tie_word_embeddings else set()
            missing = set(own) - set(named) - tied
            if missing:
                raise RuntimeError(
                    f"weight update lacks {sorted(missing)[:5]} and {max(0, len(missing) - 5)} more"
                )
            for name, value in named.items():
                own[name].copy_(value)
            self.sampler.refresh()
            if policy_version is not None:
                self.policy_version = policy_version

    # The rest of verl's server interface: memory of a GPU that this engine does not hold.
    async def wake_up(self, *_: Any, **__: Any) -> None: ...
    async def sleep(self) -> None: ...
    async def clear_kv_cache(self) -> None: ...
    async def release_kv_cache(self) -> None: ...
    async def resume_kv_cache(self) -> None: ...
    async def abort_all_requests(self, reject_request: bool = False) -> None: ...
    async def resume_generation(self) -> None: ...
    async def start_profile(self, **_: Any) -> None: ...
    async def stop_profile(self, **_: Any) -> None: ...
