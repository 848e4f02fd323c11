"""Where transformers' checkpoints lie, and why torn ones must go before it looks at them."""

from __future__ import annotations

from pathlib import Path

from vcppo.checkpoints import by_step, verify
from vcppo.errors import CheckpointError
from vcppo.files import remove

PREFIX = "checkpoint-"


def sweep_torn(root: Path) -> None:
    """Remove every checkpoint that is not whole: transformers would count it, and not save that step
    again.
    """
    for directory in by_step(root, PREFIX).values():
        try:
            verify(directory)
        except CheckpointError:
            remove(directory)
