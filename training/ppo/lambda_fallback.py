"""lam_actor moves towards 1 while the critic explains nothing (train.gae.fallback).

The advantage estimate carries the critic's error with weight 1 - lam_actor. A first study of decoupled GAE
saw 0.95 / 1.0 fall apart late in a run, after explained variance had gone; with lam_actor = 1 the critic is a
baseline only, which cannot bias the gradient (arXiv 2503.01491, section 3.2; gating on explained variance:
arXiv 2604.19485).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from vcppo.config.train import LambdaFallbackConfig

MAX_LEVEL = 5
"""From here on lam_actor is 1, however long the responses; a critic that recovers gets it back in as many
steps."""

Lambda = TypeVar("Lambda", float, Any)


class LambdaFallback:
    """Follows explained variance; `level` halvings of 1 - lam_actor are in force."""

    def __init__(self, config: LambdaFallbackConfig | None) -> None:
        self._config = config
        self._below = 0
        self.level = 0

    def replay(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take in the steps of an earlier attempt (lines of metrics.jsonl)."""
        for line in lines:
            self.observe(line.get("critic/explained_variance"))

    def observe(self, explained_variance: float | None) -> None:
        """Take in one step. None and nan (constant returns) say nothing and change nothing."""
        if self._config is None or explained_variance is None or not math.isfinite(explained_variance):
            return
        if explained_variance >= self._config.min_explained_variance:
            self._below, self.level = 0, max(0, self.level - 1)
            return
        self._below += 1
        if self._below >= self._config.steps:
            self.level = min(MAX_LEVEL, self.level + 1)

    def apply(self, lam_actor: Lambda) -> Lambda:
        """lam_actor (a number or a tensor, one a response) as it is to be used now."""
        if self.level == 0:
            return lam_actor
        distance = 0.0 if self.level == MAX_LEVEL else 0.5**self.level
        return 1.0 - (1.0 - lam_actor) * distance
