"""Seeds of the configuration, one for each purpose."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, purpose: str) -> int:
    """A seed of 32 bits for one purpose; different purposes get unrelated ones."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{purpose}".encode()).digest()[:4])
