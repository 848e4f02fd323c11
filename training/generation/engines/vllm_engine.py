"""vLLM's offline engine. Its arguments are built by pure functions, so that they are tested without vLLM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from training.generation.engine import (
    EngineSettings,
    encode_requests,
    kept_responses,
    policy_eos_token_ids,
)
from training.generation.noise import key_seed
from training.generation.samples import Draw, Keep, Request, Response
from vcppo.errors import ConfigurationError


class VllmEngine:
    """The policy in a vLLM engine of this process. Raises ConfigurationError where vLLM is not installed."""

    def __init__(self, settings: EngineSettings) -> None:
        try:
            import vllm
        except ImportError as error:
            raise ConfigurationError(
                f"engine vllm: the package cannot be imported here ({error}). Install the GPU environment "
                "(requirements/constraints-gpu.txt), or choose the engine torch or openai "
                "(VCPPO_EVALUATION_ENGINE)"
            ) from None
        from transformers import AutoTokenizer

        self.settings = settings
        self.version = str(vllm.__version__)
        self.tokenizer = AutoTokenizer.from_pretrained(settings.policy)
        self.eos_ids = policy_eos_token_ids(settings.policy, self.tokenizer)
        self.sampling_params = vllm.SamplingParams
        self.llm = vllm.LLM(**engine_arguments(settings))

    def sample(self, requests: Sequence[Request], draw: Draw, keep: Keep | None = None) -> list[Response]:
        """Responses in the order of the requests. Raises DataError for a prompt over the limit.

        vLLM finishes all requests of a call together, so they are kept together.
        """
        if len(kept := kept_responses(requests, keep)) == len(requests):
            return kept
        prompts = encode_requests(self.tokenizer, requests, self.settings.max_prompt_tokens)
        outputs = self.llm.generate(
            [{"prompt_token_ids": ids} for ids in prompts],
            [
                self.sampling_params(
                    **sampling_arguments(draw, key_seed(self.settings.seed, draw.key(r)), self.eos_ids)
                )
                for r in requests
            ],
            use_tqdm=False,
        )
        responses = [
            self._response(request, ids, output.outputs[0])
            for request, ids, output in zip(requests, prompts, outputs, strict=True)
        ]
        if keep is not None:
            keep.add(responses)
        return responses

    def _response(self, request: Request, prompt_ids: Sequence[int], completion: Any) -> Response:
        tokens = tuple(completion.token_ids)
        log_probs = tuple(
            step[token].logprob for step, token in zip(completion.logprobs or (), tokens, strict=True)
        )
        return Response(
            request=request,
            text=self.tokenizer.decode(tokens, skip_special_tokens=True),
            finish_reason=completion.finish_reason
            if completion.finish_reason in ("stop", "length")
            else "abort",
            num_tokens=len(tokens),
            engine_version=self.version,
            prompt_ids=tuple(prompt_ids),
            response_ids=tokens,
            log_probs=log_probs,
        )


def engine_arguments(settings: EngineSettings) -> dict[str, Any]:
    """Keyword arguments of `vllm.LLM`."""
    arguments: dict[str, Any] = {
        "model": str(settings.policy),
        "dtype": settings.dtype,
        "seed": settings.seed,
        "max_model_len": settings.max_prompt_tokens + settings.max_response_tokens,
        "max_num_seqs": settings.batch_size,
        "tensor_parallel_size": settings.tensor_parallel_size,
        # the default would take temperature, top_p and top_k from the policy's generation_config.json
        "generation_config": "vllm",
        # the default gives log-probabilities before temperature and truncation
        "logprobs_mode": "processed_logprobs",
    }
    if settings.tensor_parallel_size > 1:
        arguments["distributed_executor_backend"] = "mp"
    return arguments


def sampling_arguments(draw: Draw, seed: int, eos_ids: Iterable[int]) -> dict[str, Any]:
    """Keyword arguments of `vllm.SamplingParams` for one sample."""
    return {
        "n": 1,
        "temperature": draw.sampling.temperature,
        "top_p": draw.sampling.top_p,
        "top_k": draw.sampling.top_k or -1,  # vLLM keeps all tokens at -1
        "max_tokens": draw.max_response_tokens,
        "seed": seed,
        "logprobs": 0,  # of the drawn token alone
        "stop_token_ids": sorted(eos_ids),
    }
