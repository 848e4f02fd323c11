"""verl's custom reward function, for its own agent loops (the vLLM engine): the same grader, sample by
sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.generation.scoring import score_responses
from vcppo.config.stages import RewardConfig


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any],
    right: float = 1.0,
    wrong: float = -1.0,
    **_: Any,
) -> dict[str, Any]:
    """Score one response. `right` and `wrong` come from `reward.custom_reward_function.reward_kwargs`."""
    finish_reason = str(extra_info.get("finish_reason") or "stop")
    item = (solution_str, ground_truth, str(extra_info["grader"]), finish_reason)
    scored = score_responses([item], RewardConfig(right=right, wrong=wrong))[0]
    return {
        "score": scored.score,
        "acc": float(scored.status == "right"),
        "status": scored.status,
        "finish_reason": finish_reason,
        "id": str(extra_info.get("id", "")),
    }
