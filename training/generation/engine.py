"""A policy loaded for sampling in this process, and a pool of such over Ray where there are several
workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.generation.prompts import Problem, encode_prompt
from vcppo.config.stages import SamplingConfig


@dataclass(frozen=True)
class EngineSettings:
    """Everything that a sampling process needs to know; plain values, so that it travels to a Ray worker."""

    policy: Path
    seed: int
    sampling: SamplingConfig
    max_prompt_tokens: int
    max_response_tokens: int
    batch_size: int
    """Responses decoded side by side."""
    num_threads: int
    device: str = "cpu"
    dtype: str = "float32"


@dataclass(frozen=True)
class Response:
    """One sampled response, not yet graded."""

    problem: Problem
    sample: int
    prompt_ids: list[int]
    response_ids: list[int]
    log_probs: list[float]
    text: str
    finish_reason: str


class Engine:
    """The policy of `settings.policy` and its tokenizer, ready to sample."""

    def __init__(self, settings: EngineSettings) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from training.generation.sampler import TorchSampler

        torch.set_num_threads(settings.num_threads)
        self.settings = settings
        self.tokenizer = AutoTokenizer.from_pretrained(settings.policy)
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            settings.policy, dtype=getattr(torch, settings.dtype), attn_implementation="sdpa"
        )
        self.model.to(settings.device).eval()
        pad_id = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0
        self.sampler = TorchSampler(
            self.model, pad_id, eos_token_ids(self.model, self.tokenizer), settings.seed
        )

    def sample(
        self, problems: Sequence[Problem], samples_per_problem: int, key_prefix: str
    ) -> list[Response]:
        """Responses in the order (problem, sample). The noise of each is named `key_prefix/problem
        id/sample`."""
        work = [
            (problem, sample, ids)
            for problem in problems
            for ids in [encode_prompt(self.tokenizer, problem.messages, self.settings.max_prompt_tokens)]
            for sample in range(samples_per_problem)
        ]
        responses: list[Response] = []
        for start in range(0, len(work), self.settings.batch_size):
            responses.extend(self._sample_batch(work[start : start + self.settings.batch_size], key_prefix))
        return responses

    def sample_shard(
        self, index: int, problems: Sequence[Problem], samples_per_problem: int, key_prefix: str
    ) -> tuple[int, list[Response]]:
        """`sample`, with the shard's index handed back: several workers finish in any order."""
        return index, self.sample(problems, samples_per_problem, key_prefix)

    def _sample_batch(
        self, work: Sequence[tuple[Problem, int, list[int]]], key_prefix: str
    ) -> list[Response]:
        sampling = self.settings.sampling
        drawn = self.sampler.generate(
            [ids for _, _, ids in work],
            [f"{key_prefix}/{problem.id}/{sample}" for problem, sample, _ in work],
            self.settings.max_response_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
        )
        lengths = drawn.lengths.tolist()
        token_lists = [row[:n].tolist() for row, n in zip(drawn.tokens, lengths, strict=True)]
        texts = self.tokenizer.batch_decode(token_lists, skip_special_tokens=True)
        return [
            Response(
                problem=problem,
                sample=sample,
                prompt_ids=ids,
                response_ids=tokens,
                log_probs=log_probs[:n].tolist(),
                text=text,
                finish_reason="stop" if stopped else "length",
            )
            for (problem, sample, ids), tokens, log_probs, n, text, stopped in zip(
                work, token_lists, drawn.log_probs, lengths, texts, drawn.stopped.tolist(), strict=True
            )
        ]


def eos_token_ids(model: Any, tokenizer: Any) -> set[int]:
    """Every token that ends a response: the generation configuration's and the tokenizer's."""
    configured = model.generation_config.eos_token_id
    ids = set(configured if isinstance(configured, list) else [configured]) | {tokenizer.eos_token_id}
    return ids - {None}
