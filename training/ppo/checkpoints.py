"""Checkpoints that count: a manifest with every file's size and hash, written last.

verl's own tracker file is not written atomically and says nothing about torn files; it is not read. A
directory without
a manifest is the remains of a save that was killed and is swept away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcppo.errors import CheckpointError
from vcppo.files import remove, sha256_file, walk_files, write_json_atomic

MANIFEST = "manifest.json"
_STEP = re.compile(r"^global_step_(\d+)$")


def commit(directory: Path, step: int, facts: Mapping[str, Any]) -> None:
    """Write the manifest: from now on the checkpoint counts. `facts`: world size, policy version,
    fingerprint."""
    files = {
        file.relative_to(directory).as_posix(): {"bytes": file.stat().st_size, "sha256": sha256_file(file)}
        for file in sorted(walk_files(directory))
        if file.name != MANIFEST
    }
    if not files:
        raise CheckpointError(f"{directory}: holds no file; nothing was saved")
    write_json_atomic(directory / MANIFEST, {"step": step, **facts, "files": files})


def verify(directory: Path) -> dict[str, Any]:
    """The manifest of a whole checkpoint. Raises CheckpointError naming the first file that is missing or
    differs."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{directory}: has no readable {MANIFEST}: {error}") from None
    for name, expected in files.items():
        file = directory / name
        if not file.is_file() or file.stat().st_size != expected["bytes"]:
            raise CheckpointError(f"{file}: is missing or torn, expected {expected['bytes']} bytes")
        if sha256_file(file) != expected["sha256"]:
            raise CheckpointError(f"{file}: content differs from its manifest")
    return manifest


def check_fingerprint(directory: Path, fingerprint: str) -> None:
    """Raise CheckpointError if a checkpoint was made by another configuration, data or code."""
    found = verify(directory).get("fingerprint")
    if found != fingerprint:
        raise CheckpointError(
            f"{directory}: belongs to the run {found}, this one is {fingerprint}: its configuration, data or "
            "code differs. Remove the directory to start anew"
        )


def step_directories(root: Path) -> dict[int, Path]:
    """Checkpoint directories by step, newest last, whole or not."""
    found = {int(m.group(1)): p for p in root.glob("global_step_*") if (m := _STEP.match(p.name))}
    return dict(sorted(found.items()))


def newest_complete(root: Path) -> tuple[int, Path] | None:
    """The newest checkpoint that passes `verify`, or None. Torn ones are passed over, not raised."""
    for step, directory in reversed(step_directories(root).items()):
        try:
            verify(directory)
        except CheckpointError:
            continue
        return step, directory
    return None


def sweep(root: Path, keep: int, pinned: frozenset[int] = frozenset()) -> list[int]:
    """Remove all but the newest `keep` complete checkpoints and the pinned ones; torn ones go too.

    Called only after the newest has been verified, so that something whole is there at every moment.
    """
    complete = [
        step for step, directory in step_directories(root).items() if (directory / MANIFEST).is_file()
    ]
    kept = set(complete[-keep:]) | pinned
    removed = [step for step in step_directories(root) if step not in kept]
    for step in removed:
        remove(root / f"global_step_{step}")
    return removed


def last_before(root: Path, step: int) -> int | None:
    """The newest complete checkpoint of an earlier step than `step`, or None."""
    earlier = [s for s, d in step_directories(root).items() if s < step and (d / MANIFEST).is_file()]
    return earlier[-1] if earlier else None


def set_aside(root: Path, since: int) -> list[int]:
    """Rename the checkpoints of `since` and later to `diverged_step_N`: they are kept, but never resumed."""
    suspects = [step for step in step_directories(root) if step >= since]
    for step in suspects:
        target = root / f"diverged_step_{step}"
        remove(target)
        (root / f"global_step_{step}").rename(target)
    return suspects
