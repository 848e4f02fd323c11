"""The arithmetic of value-calibrated PPO: tensors in, tensors out, no trainer and no verl.

Shapes: B = batch (one response a row), T = response width in tokens, padding and holes included. A token is
*trainable* where `response_mask` is not zero; every other slot (prompt side padding, tool output, right
padding) may hold anything, inf and nan included: it is never read into a result and gets 0 in every output.

Modules:
- `gae`            decoupled generalised advantage estimation (arXiv 2503.01491), checked and dispatched;
- `compiled_scan`  its recurrence on a CPU: one compiled pass for both lambdas;
- `blocked_scan`   the same on any other device: matrix products, no loop over tokens;
- `lambdas`        rules that choose lam_actor (length-adaptive: arXiv 2504.05118);
- `whitening`      advantages to mean 0 and deviation 1 over the trainable tokens;
- `rewards`        a score onto the last trainable token; which responses the length limit cut;
- `diagnostics`    explained variance, value bias, means by position: is the critic calibrated?
- `checks`         what all of them ask of their input.

To add one: a module with one public function that opens with the paper and what differs, checks its input
through `checks`, selects by the mask (never multiplies by it), and is exported below; its tests go to
`tests/training/algorithms/` and compare it with a float64 loop written from the paper.
"""

from __future__ import annotations

from training.algorithms.diagnostics import (
    PositionBin,
    PositionProfile,
    by_position,
    explained_variance,
    value_bias,
)
from training.algorithms.gae import decoupled_gae
from training.algorithms.lambdas import length_adaptive_lambda
from training.algorithms.rewards import check_reward_sums, cut_by_length, place_score_on_last_token
from training.algorithms.whitening import whiten

__all__ = [
    "PositionBin",
    "PositionProfile",
    "by_position",
    "check_reward_sums",
    "cut_by_length",
    "decoupled_gae",
    "explained_variance",
    "length_adaptive_lambda",
    "place_score_on_last_token",
    "value_bias",
    "whiten",
]
