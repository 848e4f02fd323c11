"""Where a run executes. Read from environment variables `VCPPO_...`, never from params.yaml: other hardware
must not invalidate a result. What changes the bits (workers, threads, micro-batch) is in every record."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from vcppo.config.base import NonNegativeInt, PositiveFloat, PositiveInt
from vcppo.config.messages import configuration_error
from vcppo.errors import ConfigurationError

PREFIX = "VCPPO_"
ALSO_OURS = frozenset({"VCPPO_ROOT", "VCPPO_PARENT", "VCPPO_FAILURE_FILE", "VCPPO_FLOW_RUN", "VCPPO_SHARED"})
"""Set by our own processes for each other (workspace.py, processes.py, flows/pipeline.py), or for tests."""


class Runtime(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,  # as .env.example says
        env_nested_delimiter="__",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    device: Literal["cpu", "cuda"] = "cpu"
    num_nodes: PositiveInt = 1
    devices_per_node: PositiveInt = 1
    """GPUs of a node; on a CPU: worker processes of a node."""
    threads_per_process: PositiveInt = 1
    micro_batch_size: PositiveInt = 64
    """Responses per forward and backward pass and device."""
    micro_batch_tokens: PositiveInt = 4096
    """Tokens per forward and backward pass and device in PPO, prompts included: with a vocabulary of 50,000
    they take about 4 GB, and the activations as much again."""
    rollout_engine: Literal["torch", "vllm"] = "torch"
    """torch: built in, reproducible, for small models. vllm: GPUs."""
    rollout_batch_size: PositiveInt = 256
    """Responses that the torch engine decodes side by side."""
    evaluation_engine: Literal["torch", "vllm", "openai"] = "torch"
    """What evaluation samples with: the checkpoint in process, vLLM, or a server (openai_base_url)."""
    openai_base_url: str | None = None
    """An OpenAI-compatible server, `/v1` included; its key is read from OPENAI_API_KEY and kept nowhere."""
    openai_model: str = "{policy}"
    """Name under which the server offers a policy; `{policy}` becomes `before` or `after`."""
    openai_concurrency: PositiveInt = 16
    """Requests under way at once."""
    openai_timeout_seconds: PositiveFloat = 600.0
    """Longest silence of the server before a request is tried again."""
    tensor_parallel_size: PositiveInt = 1
    ray_address: str | None = None
    """Address of a running Ray cluster; None starts a private one on this machine."""
    object_store_megabytes: PositiveInt = 200
    wandb_mode: Literal["offline", "online", "disabled"] = "offline"
    keep_work: bool = False
    """Keep a stage's work directory (checkpoints, rollouts) after its result is published."""
    allow_layout_change: bool = False
    """Resume although workers, threads, micro-batch differ from the attempt before (other bits come out)."""
    runs_at_once: PositiveInt = 2
    """Training runs of a study side by side; each keeps about one core of its node busy."""
    retries: NonNegativeInt = 2
    """Times that a flow tries a failed stage again."""
    storage_dir: Path | None = None
    """Root of work directories; None: `work/` in the checkout."""

    @field_validator("openai_base_url")
    @classmethod
    def _address_without_secrets(cls, url: str | None) -> str | None:
        # records hold the runtime as it is
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("not an address: allowed is http://HOST[:PORT]/v1 or https://...")
            if parts.username or parts.password or parts.query or parts.fragment:
                raise ValueError("holds more than scheme, host and path: put the key into OPENAI_API_KEY")
        return url

    @property
    def work_root(self) -> Path:
        """Where work directories lie."""
        return self.storage_dir or Path("work")

    def layout(self) -> dict[str, int | str]:
        """The part that changes the bits of a CPU run; another value refuses to resume."""
        return {
            "device": self.device,
            "num_workers": self.num_nodes * self.devices_per_node,
            "threads_per_process": self.threads_per_process,
            "micro_batch_size": self.micro_batch_size,
            "micro_batch_tokens": self.micro_batch_tokens,
            "rollout_engine": self.rollout_engine,
            "rollout_batch_size": self.rollout_batch_size,
            "tensor_parallel_size": self.tensor_parallel_size,
        }


def load_runtime() -> Runtime:
    """The runtime of this process. Raises ConfigurationError naming variable, value and what is allowed, or a
    variable that nobody reads: a run on one node because of a misspelt VCPPO_NUM_NODES is found out late."""
    known = {PREFIX + name.upper() for name in Runtime.model_fields}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known | ALSO_OURS:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"allowed are {', '.join(sorted(known))}"
            raise ConfigurationError(
                f"environment: {name}: no such variable; {hint} Unset it, or mend its name"
            )
    try:
        return Runtime()
    except ValidationError as error:
        raise configuration_error(error, Runtime, "environment", prefix=PREFIX, upper=True) from None
