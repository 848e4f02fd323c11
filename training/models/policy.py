"""The policy: a causal language model with its tokenizer, from the `model` section or from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_never

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from training.models import gguf, pretrained, tiny
from training.models.quiet import quiet_transformers
from vcppo.config import GgufModel, ModelConfig, PretrainedModel, TinyModel
from vcppo.errors import CheckpointError


def load_tokenizer(model: ModelConfig) -> PreTrainedTokenizerBase:
    """The tokenizer that a policy of this section is trained with; it has chat template, end and padding
    tokens.

    Raises ConfigurationError naming the key of the section that is wrong.
    """
    quiet_transformers()
    if isinstance(model, TinyModel):
        return tiny.load_tokenizer(model)
    if isinstance(model, PretrainedModel):
        return pretrained.load_tokenizer(model)
    if isinstance(model, GgufModel):
        return gguf.load_tokenizer(model)
    assert_never(model)


def build_initial_policy(model: ModelConfig, seed: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """(model, tokenizer) before any training. The seed draws the weights of kind `tiny`; the others bring
    theirs.

    Raises ConfigurationError naming the key of the section that is wrong.
    """
    tokenizer = load_tokenizer(model)
    if isinstance(model, TinyModel):
        return tiny.load_model(model, tokenizer, seed), tokenizer
    if isinstance(model, PretrainedModel):
        return pretrained.load_model(model), tokenizer
    if isinstance(model, GgufModel):
        return gguf.load_model(model, tokenizer), tokenizer
    assert_never(model)


def save_policy(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write config, safetensors (in the type the weights have) and tokenizer with chat template to
    `folder`.
    """
    quiet_transformers()
    folder.mkdir(parents=True, exist_ok=True)
    model.config.dtype = model.dtype
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_policy(folder: Path, dtype: torch.dtype | str = "auto") -> tuple[Any, Any]:
    """(model, tokenizer) of a folder that `save_policy` wrote. Raises CheckpointError if that is not
    what it is.
    """
    from transformers import AutoModelForCausalLM

    tokenizer = load_folder_tokenizer(folder)
    try:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True), tokenizer
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder}: is no folder of a policy: {error}") from error


def load_folder_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a saved policy or value model. Raises CheckpointError if the folder has none."""
    from transformers import AutoTokenizer

    quiet_transformers()
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder}: holds no model (config.json is missing); run the stage that makes it again"
        )
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder}: its tokenizer cannot be loaded: {error}") from error
