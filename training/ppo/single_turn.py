"""verl's single-turn agent loop (the vLLM engine), which also tells how a response ended.

verl's servers call a response that was cut at the length limit `completed`, like one that ended by itself,
and a cut one must not be graded: a number that stands where it was cut is no answer. What vLLM stops at is
its last token, so that token tells the two apart, whatever the width of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from training.generation.engine import policy_eos_token_ids


class SingleTurn(SingleTurnAgentLoop):
    """Adds `finish_reason` to what reaches the reward function (training/ppo/reward.py)."""

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        output = await super().run(sampling_params, priority, **kwargs)
        ends = _end_token_ids(str(self.config.actor_rollout_ref.model.path), self.tokenizer)
        output.extra_fields["finish_reason"] = finish_reason(output.response_ids, ends)
        return output


def finish_reason(response_ids: Sequence[int], end_token_ids: Set[int]) -> str:
    """`stop`: the last token ends a response; `length`: it was cut; `abort`: the server gave nothing."""
    if not response_ids:
        return "abort"
    return "stop" if response_ids[-1] in end_token_ids else "length"


@lru_cache(maxsize=4)
def _end_token_ids(policy: str, tokenizer: Any) -> frozenset[int]:
    # verl makes an agent loop for every trajectory
    return frozenset(policy_eos_token_ids(Path(policy), tokenizer))
