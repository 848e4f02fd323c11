"""Noise that depends on a sample's name, never on when or beside whom it is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch


def row_uniforms(seed: int, keys: Sequence[str], num_tokens: int) -> torch.Tensor:
    """Uniform numbers in [0, 1), float64 `[len(keys), num_tokens]`.

    Row i is a function of (seed, keys[i]) alone, and its first n numbers do not depend on `num_tokens`:
    neither the
    order of arrival, nor the other samples of a batch, nor a restart changes a sample's noise.
    """
    rows = torch.empty(len(keys), num_tokens, dtype=torch.float64)
    for row, key in zip(rows, keys, strict=True):
        generator = torch.Generator().manual_seed(_digest(seed, key) >> 1)
        torch.rand(num_tokens, dtype=torch.float64, generator=generator, out=row)
    return rows


def key_seed(seed: int, key: str) -> int:
    """A seed below 2^31 for an engine that draws by itself: a function of (seed, key) alone."""
    return _digest(seed, key) >> 33


def _digest(seed: int, key: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}|{key}".encode(), digest_size=8).digest(), "little")
