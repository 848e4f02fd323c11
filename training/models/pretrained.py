"""Kind `pretrained`: a folder with a causal language model, or a hub repository at a pinned revision."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from vcppo.config import PretrainedModel
from vcppo.errors import ConfigurationError


def load_tokenizer(model: PretrainedModel) -> PreTrainedTokenizerBase:
    """Its own tokenizer. Raises ConfigurationError: nothing there, or no chat template or end of sequence."""
    from transformers import AutoTokenizer

    tokenizer = _from_pretrained(AutoTokenizer.from_pretrained, model)
    return checked_tokenizer(tokenizer, f"model.path {model.path!r}")


def load_model(model: PretrainedModel) -> PreTrainedModel:
    """Its weights in the type they are stored in. Raises ConfigurationError: nothing there, or not a
    causal model.
    """
    from transformers import AutoModelForCausalLM

    return _from_pretrained(AutoModelForCausalLM.from_pretrained, model, dtype="auto")


def checked_tokenizer(tokenizer: PreTrainedTokenizerBase, where: str) -> PreTrainedTokenizerBase:
    """The tokenizer with padding set; raises ConfigurationError without chat template or end of sequence."""
    if not tokenizer.chat_template:
        raise ConfigurationError(
            f"{where}: its tokenizer has no chat template, which prompts are written with; use an "
            "instruction-tuned "
            "model, or put a chat_template.jinja into a local copy of the folder"
        )
    if tokenizer.eos_token_id is None:
        raise ConfigurationError(
            f"{where}: its tokenizer names no end-of-sequence token; set eos_token in its files"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _from_pretrained(load: Callable[..., Any], model: PretrainedModel, **arguments: Any) -> Any:
    path = Path(model.path).expanduser()
    if path.exists():
        if not (path / "config.json").is_file():
            raise ConfigurationError(
                f"model.path: {model.path!r} holds no config.json; expected a folder with a transformers "
                "model"
            )
        arguments["local_files_only"] = True
    else:
        _check_repository(model)
        arguments["revision"] = model.revision
    try:
        return load(str(path) if path.exists() else model.path, **arguments)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigurationError(
            f"model.path: {model.path!r} (revision {model.revision}) cannot be loaded: {reason}; give a "
            "local folder, "
            "or a repository that this machine can reach or has in its Hugging Face cache"
        ) from error


def _check_repository(model: PretrainedModel) -> None:
    if not re.fullmatch(r"[\w.\-]+/[\w.\-]+", model.path) or model.path.startswith("."):
        raise ConfigurationError(
            f"model.path: there is no folder {model.path!r}, and it is no hub repository (owner/name) either"
        )
    if not re.fullmatch(r"[0-9a-f]{40}", model.revision or ""):
        raise ConfigurationError(
            f"model.revision: got {model.revision!r} for {model.path!r}, which is no local folder; a hub "
            "repository needs "
            "the commit (40 hex digits) whose weights are meant, or give a local folder as model.path"
        )
