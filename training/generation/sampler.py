"""Whole-batch sampling on one device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from training.generation.decoders import make_decoder
from training.generation.noise import row_uniforms
from training.generation.pick import pick_tokens
from vcppo.config.base import SamplingConfig

COMPACT_BELOW = 0.75
"""Drop finished sequences from the batch once fewer than this share of its rows is alive."""
PLAIN_SAMPLING = SamplingConfig()


@dataclass(frozen=True)
class Sampled:
    """Responses of a batch, right-padded. `[B, T]` with T the limit."""

    tokens: torch.Tensor
    """int64 `[B, T]`; behind a response's end anything."""
    log_probs: torch.Tensor
    """float32 `[B, T]`, under the distribution that was drawn from."""
    lengths: torch.Tensor
    """int64 `[B]`, the end-of-sequence token included."""
    stopped: torch.Tensor
    """bool `[B]`: ended by an end-of-sequence token (finish_reason `stop`), not by the limit (`length`)."""


class TorchSampler:
    """Draws responses from a causal language model that lives in this process.

    A batch is computed in the order of its keys, whatever order it comes in, because the last bit of a matrix
    product depends on a row's place. What the bits still depend on: the set of samples that share a batch,
    the torch build and its thread count.
    """

    def __init__(self, model: Any, pad_id: int, eos_ids: Iterable[int], seed: int) -> None:
        self.model = model
        self.decoder = make_decoder(model)
        self.pad_id = pad_id
        self.eos = torch.tensor(sorted(set(eos_ids)), device=model.device)
        self.seed = seed

    def refresh(self) -> None:
        """Call after the model's weights have changed."""
        self.decoder.refresh()

    @torch.inference_mode()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[str],
        max_new: int,
        sampling: SamplingConfig = PLAIN_SAMPLING,
    ) -> Sampled:
        """Sample one response a prompt. `keys` name the samples: equal keys draw equal noise."""
        order = sorted(range(len(keys)), key=lambda i: (keys[i], list(prompts[i])))
        drawn = self._generate([prompts[i] for i in order], [keys[i] for i in order], max_new, sampling)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return Sampled(drawn.tokens[back], drawn.log_probs[back], drawn.lengths[back], drawn.stopped[back])

    def _generate(
        self, prompts: Sequence[Sequence[int]], keys: Sequence[str], max_new: int, sampling: SamplingConfig
    ) -> Sampled:
        batch, device = len(prompts), self.model.device
        ids, mask = _left_pad(prompts, self.pad_id, device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        uniforms = row_uniforms(self.seed, keys, max_new).to(device)
        tokens = torch.full((batch, max_new), self.pad_id, device=device)
        log_probs = torch.zeros(batch, max_new, device=device)
        lengths = torch.full((batch,), max_new, device=device)
        stopped = torch.zeros(batch, dtype=torch.bool, device=device)
        rows = torch.arange(batch, device=device)  # which response each row of the running batch belongs to
        logits, last = self.decoder.prefill(ids, mask, positions, max_new), positions[:, -1]
        for t in range(max_new):
            next_ids, next_log_probs = pick_tokens(
                logits, uniforms[rows, t], sampling.temperature, sampling.top_p, sampling.top_k
            )
            running = ~stopped[rows]
            tokens[rows[running], t] = next_ids[running]
            log_probs[rows[running], t] = next_log_probs[running]
            ended = rows[running & torch.isin(next_ids, self.eos)]
            lengths[ended] = t + 1
            stopped[ended] = True
            alive = ~stopped[rows]
            num_alive = int(alive.sum())
            if num_alive == 0 or t + 1 == max_new:
                break
            last = last + 1
            if num_alive < COMPACT_BELOW * len(rows):
                kept = alive.nonzero().squeeze(-1)
                self.decoder.keep(kept)
                rows, next_ids, last = rows[kept], next_ids[kept], last[kept]
            logits = self.decoder.step(next_ids, last)
        return Sampled(tokens.cpu(), log_probs.cpu(), lengths.cpu(), stopped.cpu())


def _left_pad(
    prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), pad_id)
    mask = torch.zeros((len(prompts), width), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.as_tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    return ids.to(device), mask.to(device)
