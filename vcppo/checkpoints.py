"""Checkpoints that count: those with a manifest of every file's size and hash, written after everything else.

What saves a checkpoint writes it in place, file by file, so a directory left by a killed save looks like any
other. Nothing here deletes: which checkpoints may go is for the room that makes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcppo.errors import CheckpointError
from vcppo.files import sha256_file, walk_files, write_json_atomic

MANIFEST = "manifest.json"


def commit(directory: Path, facts: Mapping[str, Any] | None = None) -> None:
    """Write the manifest: from now on the checkpoint counts. `facts` stand in it beside the files.

    Raises CheckpointError if nothing was saved.
    """
    files = {
        file.relative_to(directory).as_posix(): {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
        for file in sorted(walk_files(directory))
        if file.name != MANIFEST
    }
    if not files:
        raise CheckpointError(f"{directory}: holds no file; nothing was saved")
    write_json_atomic(directory / MANIFEST, {**(facts or {}), "files": files})


def has_manifest(directory: Path) -> bool:
    """Whether the save came to its end; `verify` also looks at the files."""
    return (directory / MANIFEST).is_file()


def verify(directory: Path) -> dict[str, Any]:
    """The manifest of a whole checkpoint.

    Raises CheckpointError naming the first file that is missing, torn, or differs from the manifest.
    """
    try:
        manifest: dict[str, Any] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
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
    return manifest


def by_step(root: Path, prefix: str) -> dict[int, Path]:
    """The directories `<prefix><step>` below `root` by step, newest last, whole or not."""
    steps = ((path.name.removeprefix(prefix), path) for path in root.glob(f"{prefix}*"))
    return dict(sorted((int(step), path) for step, path in steps if step.isdecimal()))


def newest_complete(root: Path, prefix: str) -> tuple[int, Path] | None:
    """Step and directory of the newest one that passes `verify`, or None. Torn ones are passed over."""
    for step, directory in reversed(by_step(root, prefix).items()):
        try:
            verify(directory)
        except CheckpointError:
            continue
        return step, directory
    return None
