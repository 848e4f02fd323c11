"""Which of verl's checkpoints stay, go, or are set aside; what makes one count: vcppo.checkpoints.

verl's own tracker file is not written atomically and says nothing about torn files; it is not read.
"""

from __future__ import annotations

from pathlib import Path

from vcppo.checkpoints import by_step, has_manifest, verify
from vcppo.errors import CheckpointError
from vcppo.files import remove

PREFIX = "global_step_"


def check_fingerprint(directory: Path, fingerprint: str) -> None:
    """Raise CheckpointError if a checkpoint was made by another configuration, data or code."""
    found = verify(directory).get("fingerprint")
    if found != fingerprint:
        raise CheckpointError(
            f"{directory}: belongs to the run {found}, this one is {fingerprint}: its configuration, data or "
            "code differs. Remove the directory to start anew"
        )


def sweep(root: Path, keep: int, pinned: frozenset[int] = frozenset()) -> list[int]:
    """Remove all but the newest `keep` complete checkpoints and the pinned ones; torn ones go too.

    Called only after the newest has been verified, so that something whole is there at every moment.
    """
    directories = by_step(root, PREFIX)
    complete = [step for step, directory in directories.items() if has_manifest(directory)]
    kept = set(complete[-keep:]) | pinned
    removed = [step for step in directories if step not in kept]
    for step in removed:
        remove(directories[step])
    return removed


def last_before(root: Path, step: int) -> int | None:
    """The newest complete checkpoint of an earlier step than `step`, or None."""
    earlier = [s for s, d in by_step(root, PREFIX).items() if s < step and has_manifest(d)]
    return earlier[-1] if earlier else None


def set_aside(root: Path, since: int) -> list[int]:
    """Rename the checkpoints of `since` and later to `diverged_step_N`: they are kept, but never resumed."""
    suspects = {step: path for step, path in by_step(root, PREFIX).items() if step >= since}
    for step, directory in suspects.items():
        target = root / f"diverged_step_{step}"
        remove(target)
        directory.rename(target)
    return list(suspects)
