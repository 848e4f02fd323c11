"""Value models: the trunk of a language model with one output a token (token classifier, one label), float32.

The same class serves as critic (value of the prefix up to a token) and as reward model (read at the last
token), and verl loads it as `critic.model.path`. A value head that is missing from a checkpoint would be
drawn at random with no more than a warning; here it is an error (Jiayi-Pan/TinyZero#90), and its hash is
recorded.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from training.models.quiet import quiet_transformers
from training.models.weights import read_tensors, tensor_files
from vcppo.errors import CheckpointError

HEADS = ("score.", "classifier.")
"""Names of the output layer in transformers' token classifiers."""
HEAD_SPREAD = 0.02
"""Deviation of a fresh head's weights: first values are near 0, whatever the trunk was initialised with."""


def new_value_model(trunk_folder: Path, seed: int) -> PreTrainedModel:
    """A value model on the trunk of a saved policy, with a fresh head: small normal weights, bias 0;
    a function of the seed alone.

    Raises CheckpointError if the folder holds no model.
    """
    model = _load(trunk_folder)
    head = value_head(model)
    with torch.no_grad():
        head.weight.copy_(fresh_head_weight(head.weight.shape, seed))
        head.bias.zero_()
    return model


def fresh_head_weight(shape: torch.Size, seed: int) -> torch.Tensor:
    """Weights `[1, hidden]` of a fresh head, a function of the seed alone; its bias is 0."""
    generator = torch.Generator().manual_seed(seed)
    return torch.empty(shape).normal_(0.0, HEAD_SPREAD, generator=generator)


def value_model_config(folder: Path) -> PretrainedConfig:
    """The configuration of a folder's model as a value model. Raises CheckpointError if it holds none."""
    from transformers import AutoConfig

    _config(folder)
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    config.num_labels = 1
    # transformers' default is 0.1: values must not be noisy
    config.classifier_dropout = 0.0
    return config


def value_head(model: PreTrainedModel) -> torch.nn.Linear:
    """The output layer of a token classifier. Raises CheckpointError for an architecture without one we
    know.
    """
    for name in HEADS:
        head = getattr(model, name.removesuffix("."), None)
        if isinstance(head, torch.nn.Linear):
            return head
    raise CheckpointError(
        f"{type(model).__name__} has no output layer named {' or '.join(HEADS)}: this architecture cannot "
        "serve "
        "as a critic"
    )


def save_value_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write config, float32 safetensors and tokenizer. Raises CheckpointError if the model has other
    than one label.
    """
    if model.config.num_labels != 1:
        raise CheckpointError(
            f"{folder}: the model has {model.config.num_labels} labels; a value model has one"
        )
    quiet_transformers()
    folder.mkdir(parents=True, exist_ok=True)
    model = model.float()
    model.config.dtype = torch.float32
    model.config.architectures = [type(model).__name__]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_value_model(folder: Path) -> PreTrainedModel:
    """The value model of a folder, float32, its own head included.

    Raises CheckpointError if the folder holds no model, no value head, or one with other than one label.
    """
    check_value_model(folder)
    return _load(folder)


def check_value_model(folder: Path) -> None:
    """Raise CheckpointError unless `folder` holds a token classifier with one label and its head's
    weights.
    """
    head = _head_tensors(folder)
    if not any(name.endswith("weight") for name in head):
        raise CheckpointError(
            f"{folder}: has no value head (no tensor named {' or '.join(f'{h}weight' for h in HEADS)}): it "
            "is a language "
            "model or a torn copy, and its head would be random. Use a folder made by the reward_model or "
            "pretrain_critic stage, or start from the SFT policy (start_from: sft, critic_start: sft)"
        )
    labels = next(len(tensor) for name, tensor in head.items() if name.endswith("weight"))
    configured = _config(folder).get("id2label")
    if labels != 1 or (configured is not None and len(configured) != 1):
        raise CheckpointError(
            f"{folder}: its head has {labels} labels (config: "
            f"{len(configured) if configured else 'not given'}); a value "
            "model has exactly one. Use a model trained with num_labels = 1"
        )


def value_head_sha256(folder: Path) -> str:
    """Hex SHA-256 over the head's tensors (name, type, shape, bytes): tells a trained head from a random one.

    Raises CheckpointError if there is no head.
    """
    check_value_model(folder)
    digest = hashlib.sha256()
    for name, tensor in sorted(_head_tensors(folder).items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _load(folder: Path) -> PreTrainedModel:
    from transformers import AutoModelForTokenClassification

    quiet_transformers()
    config = value_model_config(folder)
    with torch.random.fork_rng(devices=[]):
        return AutoModelForTokenClassification.from_pretrained(
            folder, config=config, dtype=torch.float32, local_files_only=True
        )


def _config(folder: Path) -> dict:
    path = folder / "config.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: holds no model configuration ({error}); run the stage that makes it again"
        ) from error


def _head_tensors(folder: Path) -> dict[str, torch.Tensor]:
    names = [name for name in tensor_files(folder) if name.startswith(HEADS)]
    return read_tensors(folder, sorted(names))
