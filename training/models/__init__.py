"""Policies, value models and tokenizers: built, saved and loaded the same way by every stage.

Modules:
- `policy`      `load_tokenizer`, `build_initial_policy` from the `model` section; saving and loading
- `tiny`        kind `tiny`: a small Qwen2 from scratch
- `characters`  its character-level tokenizer with chat template, built in code
- `pretrained`  kind `pretrained`: a folder, or a pinned revision of a hub repository
- `gguf`        kind `gguf`: a GGUF file inside an installed package, converted
- `value`       value models (token classifier, one label): new, saved, loaded, their head checked and hashed
- `value_start` a policy's folder as a value model: a head file beside links to the trunk
- `seeds`       a seed of its own for each purpose
- `weights`     reading single tensors and names out of a folder of safetensors
- `quiet`       transformers without bars and load reports

To add a kind of model: a section in `vcppo/config/model.py`, a module here with `load_tokenizer` and
`load_model`, and its branch in `policy`.
"""

from __future__ import annotations

from training.models.characters import lost_characters
from training.models.policy import build_initial_policy, load_policy, load_tokenizer, save_policy
from training.models.value import load_value_model, new_value_model, save_value_model, value_head_sha256

__all__ = [
    "build_initial_policy",
    "load_policy",
    "load_tokenizer",
    "load_value_model",
    "lost_characters",
    "new_value_model",
    "save_policy",
    "save_value_model",
    "value_head_sha256",
]
