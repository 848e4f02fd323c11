"""Which model the policy starts from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vcppo.config.base import PositiveInt, Section


class TinyModel(Section):
    """A Qwen2-like model from scratch with its own tokenizer; runs anywhere, some 0.1 M parameters."""

    kind: Literal["tiny"] = "tiny"
    hidden_size: PositiveInt = 64
    intermediate_size: PositiveInt = 160
    num_layers: PositiveInt = 2
    num_heads: PositiveInt = 4
    num_kv_heads: PositiveInt = 4
    max_positions: PositiveInt = 512
    """Longest sequence in tokens, prompt and response together."""


class PretrainedModel(Section):
    """A folder or a Hugging Face repository with a causal language model and its tokenizer."""

    kind: Literal["pretrained"] = "pretrained"
    path: str
    """Local folder, or `owner/name` on the hub."""
    revision: str | None = None
    """Commit of the hub repository (40 hex digits): pinned, so that tomorrow's weights are today's."""


class GgufModel(Section):
    """A GGUF file shipped inside an installed Python package; converted to safetensors by the sft stage."""

    kind: Literal["gguf"] = "gguf"
    package: str
    """Import name of the package that ships the file."""
    file: str
    """Name of the file inside the package."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Hash of the file: other weights are another configuration."""


ModelConfig = Annotated[TinyModel | PretrainedModel | GgufModel, Field(discriminator="kind")]
