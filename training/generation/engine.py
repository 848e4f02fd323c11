"""The checkpoint in this process, and what every engine needs to know."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from training.generation.prompts import Message, encode_prompt
from training.generation.samples import Draw, Keep, Request, Response
from vcppo.config.base import SamplingConfig

EngineName = Literal["torch", "vllm", "openai"]


@dataclass(frozen=True)
class ServerAddress:
    """An OpenAI-compatible server. Its key is read from OPENAI_API_KEY where it is used and kept nowhere."""

    base_url: str
    """Up to and including `/v1`."""
    model: str
    """Name under which the server offers the policy."""
    concurrency: int = 16
    """Requests under way at once."""
    timeout_seconds: float = 600.0
    backoff_seconds: float = 0.5
    """First pause before trying again; doubled each time."""


@dataclass(frozen=True)
class EngineSettings:
    """Everything that a sampling process needs to know; plain values, so that it travels to a Ray worker."""

    policy: Path
    seed: int
    sampling: SamplingConfig
    """How a plan draws that does not say otherwise."""
    max_prompt_tokens: int
    max_response_tokens: int
    """The longest response of any draw."""
    batch_size: int
    """Responses decoded side by side."""
    num_threads: int
    device: str = "cpu"
    dtype: str = "float32"
    engine: EngineName = "torch"
    tensor_parallel_size: int = 1
    server: ServerAddress | None = None
    """For engine `openai`."""


class Engine:
    """The policy of `settings.policy` and its tokenizer, ready to sample in this process."""

    def __init__(self, settings: EngineSettings) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from training.generation.sampler import TorchSampler
        from training.models.quiet import quiet_transformers

        quiet_transformers()
        torch.set_num_threads(settings.num_threads)
        self.settings = settings
        self.version = f"{torch.__version__}, transformers {importlib.metadata.version('transformers')}"
        self.tokenizer = AutoTokenizer.from_pretrained(settings.policy)
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            settings.policy, dtype=getattr(torch, settings.dtype), attn_implementation="sdpa"
        )
        self.model.to(settings.device).eval()
        pad_id = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0
        self.sampler = TorchSampler(
            self.model, pad_id, eos_token_ids(self.model, self.tokenizer), settings.seed
        )

    def sample(self, requests: Sequence[Request], draw: Draw, keep: Keep | None = None) -> list[Response]:
        """Responses in the order of the requests. Raises DataError for a prompt over the limit."""
        prompts = encode_requests(self.tokenizer, requests, self.settings.max_prompt_tokens)
        responses: list[Response] = []
        for start in range(0, len(requests), self.settings.batch_size):
            part = slice(start, start + self.settings.batch_size)
            batch = kept_responses(requests[part], keep)
            # a batch is drawn whole: beside others a sample's last digits could differ
            if len(batch) < len(requests[part]):
                batch = self._sample_batch(requests[part], prompts[part], draw)
                if keep is not None:
                    keep.add(batch)
            responses.extend(batch)
        return responses

    def _sample_batch(
        self, requests: Sequence[Request], prompts: Sequence[list[int]], draw: Draw
    ) -> list[Response]:
        drawn = self.sampler.generate(
            prompts,
            [draw.key(request) for request in requests],
            draw.max_response_tokens,
            draw.sampling,
        )
        lengths = drawn.lengths.tolist()
        token_lists = [row[:n].tolist() for row, n in zip(drawn.tokens, lengths, strict=True)]
        texts = self.tokenizer.batch_decode(token_lists, skip_special_tokens=True)
        return [
            Response(
                request=request,
                text=text,
                finish_reason="stop" if stopped else "length",
                num_tokens=n,
                engine_version=self.version,
                prompt_ids=tuple(ids),
                response_ids=tuple(tokens),
                log_probs=tuple(log_probs[:n].tolist()),
            )
            for request, ids, tokens, log_probs, n, text, stopped in zip(
                requests,
                prompts,
                token_lists,
                drawn.log_probs,
                lengths,
                texts,
                drawn.stopped.tolist(),
                strict=True,
            )
        ]


def kept_responses(requests: Sequence[Request], keep: Keep | None) -> list[Response]:
    """Responses that an earlier attempt finished, in the order of the requests; the others are left out."""
    found = [keep.get(request) for request in requests] if keep is not None else []
    return [response for response in found if response is not None]


def encode_requests(tokenizer: Any, requests: Sequence[Request], max_prompt_tokens: int) -> list[list[int]]:
    """Prompt token ids of each request; samples that show the same messages are encoded once."""
    known: dict[int, list[int]] = {}
    encoded: list[list[int]] = []
    for request in requests:
        # the tuple of messages is shared by the samples of a problem, and `requests` keeps it alive
        messages: tuple[Message, ...] = request.messages
        if id(messages) not in known:
            known[id(messages)] = encode_prompt(tokenizer, messages, max_prompt_tokens)
        encoded.append(known[id(messages)])
    return encoded


def eos_token_ids(model: Any, tokenizer: Any) -> set[int]:
    """Every token that ends a response: the generation configuration's and the tokenizer's."""
    return _ids(model.generation_config.eos_token_id) | _ids(tokenizer.eos_token_id)


def policy_eos_token_ids(policy: Path, tokenizer: Any) -> set[int]:
    """`eos_token_ids` of a folder, without loading its weights."""
    from transformers import AutoConfig, GenerationConfig

    if (policy / "generation_config.json").is_file():
        configured = GenerationConfig.from_pretrained(policy).eos_token_id
    else:
        configured = getattr(AutoConfig.from_pretrained(policy), "eos_token_id", None)
    return _ids(configured) | _ids(tokenizer.eos_token_id)


def _ids(configured: int | list[int] | None) -> set[int]:
    return {i for i in (configured if isinstance(configured, list) else [configured]) if i is not None}
