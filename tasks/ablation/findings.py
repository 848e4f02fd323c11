"""What the paper claims (arXiv 2503.01491), and whether a study agrees.

A finding is {"claim", "holds", "evidence"}; `holds` is None where the study lacks the numbers. A claim that
fails stays in the list: it is a result. Comparisons are claims at every step at which both rows were
evaluated: arms that differ early can meet once the task is solved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.ablation.text import verdict, with_runs
from tasks.reporting.numbers import figure, share, signed
from vcppo.config import Config

Finding = dict[str, Any]

ACCURACY_SHARE, LENGTH_SHARE = 0.5, 0.25
"""What plain PPO keeps of the SFT policy at most, once it has collapsed."""
SOLVED, SOLVED_BY = 0.9, 12
"""Accuracy of VC-PPO, and the step by which its training accuracy gets there."""


def findings(summary: Mapping[str, Any], config: Config) -> list[Finding]:
    """Of the rows `ppo` and `vc_ppo`, where a study has both; then those of each comparison.

    summary: what `tasks.ablation.summary` computes.
    """
    rows = summary["rows"]
    found = []
    if {"ppo", "vc_ppo"} <= rows.keys():
        limit = config.pretrain_critic.gate.max_abs_value_bias
        found = [
            *collapse(rows["ppo"], summary["base"]),
            *cure(rows["vc_ppo"]),
            *stopping(rows["ppo"], rows["vc_ppo"]),
            *bias(rows["ppo"], rows["vc_ppo"], limit),
        ]
    return found + [own for pair in summary["comparisons"] for own in differences(pair, rows)]


def collapse(ppo: Mapping[str, Any], base: Mapping[str, Any]) -> list[Finding]:
    """Plain PPO from the biased critic loses accuracy and length."""
    accuracy, length = ppo["accuracy"], ppo["length"]
    sft_accuracy, sft_length = base["average_at_k"], base["mean_response_tokens"]
    return [
        _finding(
            "PPO from the biased critic ends below half of the SFT policy's accuracy.",
            accuracy and accuracy["mean"] < ACCURACY_SHARE * sft_accuracy,
            f"PPO {with_runs(accuracy)}, SFT policy {share(sft_accuracy)}",
        ),
        _finding(
            "PPO from the biased critic ends below a quarter of the SFT policy's length.",
            length and length["mean"] < LENGTH_SHARE * sft_length,
            f"PPO {with_runs(length)} tokens, SFT policy {figure(float(sft_length))} tokens",
        ),
    ]


def cure(vc_ppo: Mapping[str, Any]) -> list[Finding]:
    """VC-PPO solves the task, and soon."""
    accuracy, step = vc_ppo["accuracy"], vc_ppo["first_step_reached"]
    at = "".join(f"; held-out {with_runs(mean)} at step {own}" for own, mean in vc_ppo["accuracy_at"].items())
    reached = "never" if step is None else f"from step {step}"
    return [
        _finding(
            f"VC-PPO ends above {SOLVED:g}.",
            accuracy and accuracy["mean"] > SOLVED,
            f"VC-PPO {with_runs(accuracy)} held out",
        ),
        _finding(
            f"VC-PPO reaches {SOLVED:g} by step {SOLVED_BY}.",
            None if accuracy is None else step is not None and step <= SOLVED_BY,
            f"mean training accuracy of {SOLVED:g} or more {reached}{at}",
        ),
    ]


def stopping(ppo: Mapping[str, Any], vc_ppo: Mapping[str, Any]) -> list[Finding]:
    """The sign that tells the two apart: advantage of stopping minus that of going on, at the first step."""
    biased, calibrated = ppo["stopping_advantage"]["first"], vc_ppo["stopping_advantage"]["first"]
    return [
        _finding(
            "At step 1 PPO credits stopping more than going on.",
            biased and biased["mean"] > 0,
            f"advantage of stopping minus that of going on {with_runs(biased, sign=True)}",
        ),
        _finding(
            "At step 1 VC-PPO does not.",
            calibrated and calibrated["mean"] <= 0,
            f"advantage of stopping minus that of going on {with_runs(calibrated, sign=True)}",
        ),
    ]


def bias(ppo: Mapping[str, Any], vc_ppo: Mapping[str, Any], limit: float) -> list[Finding]:
    """The fault that value pretraining cures. limit: what its gate lets pass."""
    biased, calibrated = ppo["value_bias"]["first"], vc_ppo["value_bias"]["first"]
    return [
        _finding(
            f"At step 1 PPO's critic is far too low: its value bias is below {signed(-limit)}, "
            "which the gate of value pretraining would refuse.",
            biased and biased["mean"] < -limit,
            f"value bias {with_runs(biased, sign=True)}",
        ),
        _finding(
            "At step 1 VC-PPO's critic is calibrated: its value bias is within "
            f"\N{PLUS-MINUS SIGN}{limit:g}.",
            calibrated and abs(calibrated["mean"]) <= limit,
            f"value bias {with_runs(calibrated, sign=True)}",
        ),
    ]


def differences(pair: Mapping[str, Any], rows: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether a comparison's intervals lie above 0, step by step and at the end."""
    better, worse = (rows[pair[side]]["label"] for side in ("better", "worse"))
    # the last step that both were evaluated at is the end
    for step, mean in list(pair["at"].items())[:-1]:
        if mean is not None and mean["low"] == mean["high"] == 0:
            continue  # the same run so far, as with an option that acts late
        yield _difference(f"At step {step} {better} is above {worse}.", mean)
    yield _difference(f"{better} ends above {worse}.", pair["end"])


def _difference(claim: str, mean: Mapping[str, Any] | None) -> Finding:
    return _finding(
        claim,
        None if mean is None or mean["low"] is None else mean["low"] > 0,
        f"paired difference in held-out accuracy {with_runs(mean, sign=True)}: {verdict(mean)}",
    )


def _finding(claim: str, holds: Any, evidence: str) -> Finding:
    return {"claim": claim, "holds": None if holds is None else bool(holds), "evidence": evidence}
