"""verl's custom reward function, for its agent loops (the vLLM engine): the same grader, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.generation.scoring import score_responses
from vcppo.config.stages import RewardConfig
from vcppo.errors import GraderError


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any],
    right: float = 1.0,
    wrong: float = -1.0,
    **_: Any,
) -> dict[str, Any]:
    """Score one response. `right` and `wrong` come from `reward.custom_reward_function.reward_kwargs`.

    Raises GraderError if nobody says how the response ended: a cut one could be rewarded.
    """
    if not (finish_reason := extra_info.get("finish_reason")):
        raise GraderError(
            f"problem {extra_info.get('id', '')}: its response came without finish_reason, got "
            f"{', '.join(sorted(extra_info)) or 'nothing'}; responses must come from the agent loop "
            f"training.ppo.single_turn (rollout.agent.default_agent_loop)"
        )
    item = (solution_str, ground_truth, str(extra_info["grader"]), str(finish_reason))
    scored = score_responses([item], RewardConfig(right=right, wrong=wrong))[0]
    return {
        "score": scored.score,
        "acc": float(scored.status == "right"),
        "status": scored.status,
        "finish_reason": str(finish_reason),
        "id": str(extra_info.get("id", "")),
    }
