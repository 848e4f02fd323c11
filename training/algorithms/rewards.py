"""From the grader's one score a response to rewards a token, and which responses the length limit cut.

Both ask what is known (the mask, the finish_reason) and infer nothing from the width of the batch: a response
that fills its row may well be complete, and the last column is often padding or tool output.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from training.algorithms import checks
from vcppo.errors import DataError


def place_score_on_last_token(scores: Tensor, response_mask: Tensor) -> Tensor:
    """token_level_rewards [batch, response]: each score [batch] on its row's last trainable token, else 0.

    The rewards of a row sum to its score. A row without a trainable token has no place for one and stays 0.
    Integer and half-precision scores give float32.

    Raises DataError (a ValueError): shapes differ, a score is not finite, or no token is trainable.
    """
    if response_mask.ndim != 2 or scores.shape != response_mask.shape[:1]:
        raise DataError(
            f"shapes differ: scores {list(scores.shape)}, response_mask {list(response_mask.shape)}; "
            "allowed are [batch] and [batch, response]"
        )
    finite = torch.isfinite(scores)
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        raise DataError(
            f"scores[{row}] is {scores[row].item()!r}; a score must be finite: drop ungraded responses"
        )
    selected = checks.trainable(response_mask)
    dtype = torch.promote_types(scores.dtype, torch.float32)
    # 1 only at the last trainable token: from there on, no further one follows.
    still_to_come = selected.flip(1).cumsum(1).flip(1)
    is_last = selected & (still_to_come == 1)
    return torch.where(is_last, scores.detach().to(dtype)[:, None], 0.0).to(dtype)


def check_reward_sums(token_level_rewards: Tensor, response_mask: Tensor, scores: Tensor) -> None:
    """Each row's rewards over its mask sum to its score [batch]; rows without a trainable token are left out.

    Raises DataError naming the first row of which that is not true: part of its score lies where no token
    learns from it.
    """
    selected = checks.trainable(response_mask)
    sums = torch.where(selected, token_level_rewards, 0.0).sum(1)
    wrong = selected.any(1) & ~torch.isclose(sums, scores.to(sums.dtype), rtol=1e-5, atol=1e-6)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise DataError(
            f"the rewards of response {row} sum to {float(sums[row]):.6g} over its mask, its score is "
            f"{float(scores[row]):.6g}; they must be equal: the score belongs on the last trainable token"
        )


def cut_by_length(finish_reasons: Sequence[str]) -> Tensor:
    """bool [batch]: the responses that the length limit cut, which their finish_reason ("length") tells."""
    return torch.tensor([reason == "length" for reason in finish_reasons], dtype=torch.bool)
