"""Engines behind one interface: requests in, responses out, in the same order.

- `vllm_engine`    vLLM's offline `LLM` class, on GPUs
- `openai_engine`  any server that speaks OpenAI's chat completions
- the checkpoint in this process is `training.generation.engine.Engine`

To add one: a class with `sample`, a name in `EngineName`, an entry in `make_engine`; its version goes into
every response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

from training.generation.engine import EngineSettings
from training.generation.samples import Draw, Keep, Request, Response


class SamplingEngine(Protocol):
    def sample(self, requests: Sequence[Request], draw: Draw, keep: Keep | None = None) -> list[Response]:
        """One response a request, in order. What `keep` has is not drawn again, what is finished goes into it
        at once. Raises VcppoError subclasses; no response is ever made up."""


def make_engine(settings: EngineSettings) -> SamplingEngine:
    """The engine that `settings` names, loaded. Raises ConfigurationError where it cannot run here."""
    if settings.engine == "torch":
        from training.generation.engine import Engine

        return Engine(settings)
    if settings.engine == "vllm":
        from training.generation.engines.vllm_engine import VllmEngine

        return VllmEngine(settings)
    if settings.engine == "openai":
        from training.generation.engines.openai_engine import OpenAIEngine

        return OpenAIEngine(settings)
    assert_never(settings.engine)
