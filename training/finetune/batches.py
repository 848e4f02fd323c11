"""Lists of different lengths into one rectangular tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

IGNORED = -100
"""Label of a position that carries no loss (transformers' convention; its Trainer counts the others)."""


def pad_right(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> Tensor:
    """[B, T] with T the longest row; the rest of each row holds `fill`."""
    width = max(len(row) for row in rows)
    batch = torch.full((len(rows), width), fill, dtype=dtype)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = torch.tensor(row, dtype=dtype)
    return batch
