"""Early stopping, measured where responses are written in steps of equal length (train.stopping).

At each boundary before the last step a response either goes on or begins its answer. A critic that is biased
low at early tokens gives stopping a positive advantage whatever the answer, and the policy learns to quit;
after value pretraining the sign turns (arXiv 2503.01491, section 3.1).
"""

from __future__ import annotations

import torch


def stopping_metrics(
    responses: torch.Tensor,
    mask: torch.Tensor,
    advantages: torch.Tensor | None,
    *,
    answer_token_id: int,
    step_tokens: int,
    num_steps: int,
) -> dict[str, float]:
    """Hazard of stopping and its advantage at step boundaries; tensors `[B, T]`, advantages not whitened.

    A boundary is a multiple of `step_tokens` (the start of the response included) before `num_steps` steps
    are done. It is visited by the responses that reach it and have not begun their answer. Figures that no
    visit supports are left out.
    """
    width = min(responses.shape[1], step_tokens * num_steps)
    answering = (responses == answer_token_id) & (mask != 0)
    began_before = answering.cumsum(1) - answering.long() > 0
    visited = ((mask != 0) & ~began_before)[:, :width:step_tokens]
    stops = answering[:, :width:step_tokens] & visited
    goes_on = visited & ~stops
    metrics = {}
    if bool(visited.any()):
        metrics["stopping/hazard"] = float(stops.sum() / visited.sum())
    if advantages is None:
        return metrics
    at_boundary = advantages[:, :width:step_tokens].double()
    if bool(stops.any()):
        metrics["stopping/advantage_stop"] = float(at_boundary[stops].mean())
    if bool(goes_on.any()):
        metrics["stopping/advantage_go_on"] = float(at_boundary[goes_on].mean())
    if bool(stops.any()) and bool(goes_on.any()):
        metrics["stopping/advantage"] = (
            metrics["stopping/advantage_stop"] - metrics["stopping/advantage_go_on"]
        )
    return metrics
