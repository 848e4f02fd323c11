"""What lies in a folder of safetensors, read without building the model."""

from __future__ import annotations

import json
from pathlib import Path

from torch import Tensor

from vcppo.errors import CheckpointError


def tensor_files(folder: Path) -> dict[str, Path]:
    """File of each tensor by name, one file or sharded with an index.

    Raises CheckpointError if there are no safetensors, a shard is missing, or a header is torn.
    """
    from safetensors import SafetensorError, safe_open

    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if index.is_file():
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        files = {name: folder / file for name, file in names.items()}
    elif single.is_file():
        try:
            with safe_open(single, framework="pt") as tensors:
                files = dict.fromkeys(tensors.keys(), single)
        except SafetensorError as error:
            raise CheckpointError(f"{single}: is no complete safetensors file: {error}") from error
    else:
        raise CheckpointError(f"{folder}: holds no model.safetensors; run the stage that makes it again")
    missing = sorted({path.name for path in files.values() if not path.is_file()})
    if missing:
        raise CheckpointError(f"{folder}: its index names files that are missing: {', '.join(missing)}")
    return files


def read_tensors(folder: Path, names: list[str]) -> dict[str, Tensor]:
    """The named tensors, on the CPU, as stored. Raises CheckpointError as `tensor_files` does, or for
    an unknown name.
    """
    from safetensors import safe_open

    files = tensor_files(folder)
    unknown = [name for name in names if name not in files]
    if unknown:
        raise CheckpointError(f"{folder}: holds no tensor {', '.join(unknown)}")
    tensors = {}
    for name in names:
        with safe_open(files[name], framework="pt") as stored:
            tensors[name] = stored.get_tensor(name)
    return tensors
