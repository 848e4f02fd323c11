"""Which of transformers' checkpoints are whole: those with a manifest, written after everything else.

transformers writes a checkpoint in place, file by file, so a directory left by a killed save looks like any
other.
"""

from __future__ import annotations

import json
from pathlib import Path

from vcppo.errors import CheckpointError
from vcppo.files import remove, sha256_file, walk_files, write_json_atomic

MANIFEST = "manifest.json"
PREFIX = "checkpoint-"


def commit(directory: Path) -> None:
    """Write the manifest (size and hash of each file): from now on the checkpoint counts."""
    files = {
        file.relative_to(directory).as_posix(): {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
        for file in sorted(walk_files(directory))
        if file.name != MANIFEST
    }
    write_json_atomic(directory / MANIFEST, {"files": files})


def verify(directory: Path) -> None:
    """Raise CheckpointError naming the first file that is missing, torn, or differs from the manifest."""
    try:
        files = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{directory}: has no readable {MANIFEST} ({error}): its save was cut short"
        ) from None
    for name, expected in files.items():
        file = directory / name
        if not file.is_file() or file.stat().st_size != expected["bytes"]:
            raise CheckpointError(f"{file}: is missing or torn, expected {expected['bytes']} bytes")
        if sha256_file(file) != expected["sha256"]:
            raise CheckpointError(f"{file}: its content differs from the manifest")


def newest_complete(root: Path) -> Path | None:
    """The newest whole checkpoint below `root`, or None."""
    for _, directory in sorted(_by_step(root).items(), reverse=True):
        try:
            verify(directory)
        except CheckpointError:
            continue
        return directory
    return None


def sweep_torn(root: Path) -> None:
    """Remove every checkpoint that is not whole: transformers would count it, and not save that step
    again.
    """
    for directory in _by_step(root).values():
        try:
            verify(directory)
        except CheckpointError:
            remove(directory)


def _by_step(root: Path) -> dict[int, Path]:
    directories = root.glob(f"{PREFIX}*") if root.is_dir() else ()
    return {
        int(path.name.removeprefix(PREFIX)): path
        for path in directories
        if path.name[len(PREFIX) :].isdigit()
    }
