"""A policy's folder as a value model, without copying or even reading its weights.

verl gives a critic that starts from a policy the head that `from_pretrained` draws, from whatever state its
process's generator has. Here the head is a function of the seed, in a file of its own; links lead to the
trunk.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from training.models.value import fresh_head_weight, value_head, value_model_config
from training.models.weights import tensor_files

HEAD_FILE = "value_head.safetensors"


def link_value_model(policy: Path, target: Path, seed: int) -> Path:
    """Make `target` a value model on the trunk in `policy`, with the head of `new_value_model`; returns it.

    Raises CheckpointError if `policy` holds no model, or one of an architecture that cannot be a critic.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForTokenClassification

    files = tensor_files(policy)
    config = value_model_config(policy)
    with torch.device("meta"):
        model = AutoModelForTokenClassification.from_config(config)
    head = value_head(model)
    name = next(name for name, module in model.named_modules() if module is head)
    weight = fresh_head_weight(head.weight.shape, seed)

    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    config.architectures = [type(model).__name__]
    config.save_pretrained(target)
    tensors = {f"{name}.weight": weight, f"{name}.bias": torch.zeros(head.bias.shape)}
    save_file(tensors, target / HEAD_FILE, metadata={"format": "pt"})
    # renamed: where a file model.safetensors lies, transformers reads no index
    for file in sorted({path.name for path in files.values()}):
        (target / file.replace("model", "trunk", 1)).symlink_to((policy / file).resolve())
    where = {tensor: path.name.replace("model", "trunk", 1) for tensor, path in files.items()}
    index = {"metadata": {}, "weight_map": where | dict.fromkeys(tensors, HEAD_FILE)}
    # last, for it makes the folder a model
    (target / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return target
