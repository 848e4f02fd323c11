"""verl's dataset with only the columns that the rollout uses (data.custom_cls)."""

from __future__ import annotations

from typing import Any

import torch
from verl.utils.dataset.rl_dataset import RLHFDataset

KEPT_COLUMNS = frozenset({"raw_prompt", "reward_model", "data_source", "index", "extra_info"})


class LeanDataset(RLHFDataset):
    """Each further column would become one tensordict object a sample and step; rows are kept once
    decoded."""

    def __getitem__(self, item: int) -> dict[str, Any]:
        rows: dict[int, dict[str, Any]] = self.__dict__.setdefault("_rows", {})
        if item not in rows:
            full = super().__getitem__(item)
            rows[item] = {k: v for k, v in full.items() if k in KEPT_COLUMNS or isinstance(v, torch.Tensor)}
        return dict(rows[item])
