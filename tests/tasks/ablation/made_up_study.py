"""A small study as its runs publish it: rows grpo, ppo and vc_ppo, three seeds each, one run stopped."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vcppo.config import Config, load_params
from vcppo.files import write_json_atomic

ROOT = Path(__file__).resolve().parents[3]
BENCHMARK = "running_sum"
NUM_STEPS = 8

ROWS: list[dict[str, Any]] = [
    {
        "name": "grpo",
        "label": "GRPO",
        "num_seeds": 3,
        "paper": 35.8,
        "changes": {"algorithm": "grpo", "prompts_per_step": 48, "samples_per_prompt": 4},
    },
    {
        "name": "ppo",
        "label": "PPO (0.95 / 0.95)",
        "num_seeds": 3,
        "paper": 5.6,
        "pretraining_share": 0,
        "changes": {"algorithm": "ppo", "gae.lam_actor": 0.95, "gae.lam_critic": 0.95},
    },
    {"name": "vc_ppo", "label": "VC-PPO (0.95 / 1.0)", "num_seeds": 3, "paper": 41.9},
    {
        "name": "lam_actor_1",
        "label": "lambda_actor 1.0",
        "num_seeds": 3,
        "changes": {"gae.lam_actor": 1.0},
    },
]
ABLATION: dict[str, Any] = {
    "evaluate_steps": [4],
    "rows": ROWS,
    "tables": [
        {"title": "The ingredients", "rows": ["grpo", "ppo", "vc_ppo"]},
        {"title": "Lambda of the policy", "rows": ["vc_ppo", "lam_actor_1"]},
    ],
    "comparisons": [{"better": "vc_ppo", "worse": "ppo"}, {"better": "vc_ppo", "worse": "grpo"}],
}
FINAL = {
    "grpo": (0.86, 0.90, 0.94),
    "ppo": (0.10, 0.14, 0.12),
    "vc_ppo": (0.93, 0.95, 0.94),
    "lam_actor_1": (0.92, 0.97, 0.93),
}
"""Held-out accuracy at the end, by seed."""


def figures(accuracy: float, tokens: float) -> dict[str, Any]:
    return {
        "average_at_k": accuracy,
        "standard_error": 0.02,
        "interval_95": [accuracy - 0.04, accuracy + 0.04],
        "answer_rate": 1.0,
        "truncation_rate": 0.0,
        "mean_response_tokens": tokens,
        "num_problems": 128,
        "samples_per_problem": 4,
    }


def step_metrics(row: str, seed: int, step: int, *, stopping: bool = True) -> dict[str, Any]:
    """Metrics of a step as the contract has them; accuracy comes down for ppo and up for the others."""
    done, shift = (step - 1) / (NUM_STEPS - 1), 0.01 * (seed - 1)
    collapses = row == "ppo"
    line: dict[str, Any] = {
        "step": step,
        "critic/score/mean": 0.1,
        "response/accuracy": 0.55 - 0.43 * done + shift if collapses else 0.55 + 0.4 * done + shift,
        "response/length": 61 - 50 * done + seed if collapses else 61 + 21 * done + seed,
        "actor/entropy_loss": 0.4 - 0.2 * done + shift,
        "actor/kl_to_sft": 0.8 * done if collapses else 0.05 * done + abs(shift) * done,
        "timing_s/step": 4.0,
        "guard/length_collapse": 1.0 if collapses and step >= 5 else None,
    }
    if stopping:
        line["stopping/hazard"] = 0.05 + 0.4 * done if collapses else 0.05 * (1 - done)
    if row == "grpo":
        return line
    bias = -1.2 * (1 - done) if collapses else -0.02
    line |= {
        "critic/value_bias": bias + shift,
        "critic/explained_variance": -12.0 if collapses and step == 1 else 0.3 * done + shift,
        "critic/vf_loss": 0.4,
    }
    if stopping:
        line["stopping/advantage"] = (1.3 if collapses else -1.0) + shift
    for index in range(10):
        value = -2.4 + 0.25 * index if collapses else 0.05 + 0.01 * index
        line[f"position/value_{index}"] = value + shift
        line[f"position/return_{index}"] = 0.1 if not collapses else value + 0.3
        line[f"position/advantage_{index}"] = 0.3 if collapses else 0.0
    return line


def write_config(path: Path, ablation: Mapping[str, Any] = ABLATION) -> Config:
    """params.yaml below `path`: the ablation profile with another, smaller study."""
    values = yaml.safe_load((ROOT / "profiles/ablation.yaml").read_text(encoding="utf-8"))
    values["train"] |= {"num_steps": NUM_STEPS, "save_every_steps": 4}
    values["ablation"] = dict(ablation)
    (path / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return load_params(path / "params.yaml")


def write_study(
    folder: Path,
    final: Mapping[str, Sequence[float]] = FINAL,
    *,
    stopping: bool = True,
    stopped: tuple[str, int] | None = ("ppo", 2),
) -> None:
    """base.json, critics.json, runs.json and metrics below `folder`.

    stopped: (row, seed index) of the run that a guard stopped at step 6, after its checkpoint of step 4.
    """
    runs = []
    for row, accuracies in final.items():
        for index, accuracy in enumerate(accuracies):
            ends = stopped == (row, index)
            last = 6 if ends else NUM_STEPS
            tokens = 10.0 + index if row == "ppo" else 80.0 + index
            evaluations = {"4": {BENCHMARK: figures(accuracy - 0.05, tokens - 2)}}
            if not ends:
                evaluations["8"] = {BENCHMARK: figures(accuracy, tokens)}
            runs.append(
                {
                    "row": row,
                    "seed_index": index,
                    "seed": 1 + index,
                    "outcome": "stopped" if ends else "finished",
                    "guard": "length_collapse" if ends else None,
                    "reason": "guard length_collapse, steps 5 to 6: <too short>" if ends else None,
                    "last_step": last,
                    "seconds": 30.0 + index,
                    "fingerprint": f"{row}{index}".ljust(16, "0"),
                    "evaluations": evaluations,
                }
            )
            metrics = folder / "metrics" / row / f"{index}.jsonl"
            metrics.parent.mkdir(parents=True, exist_ok=True)
            lines = [step_metrics(row, index, step, stopping=stopping) for step in range(1, last + 1)]
            metrics.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write_json_atomic(folder / "base.json", {"evaluation": {BENCHMARK: figures(0.55, 61.0)}})
    write_json_atomic(folder / "critics.json", [critic(2.0, 192), critic(1.0, 96), critic(0.25, 24)])
    write_json_atomic(folder / "runs.json", runs)


def critic(share: float, num_steps: int) -> dict[str, Any]:
    """Its loss falls steeply, then slowly, as in the paper."""
    steps = range(0, num_steps + 1, max(1, num_steps // 24))
    losses = [0.107 + 0.7 * math.exp(-step / 5) - 1e-5 * step for step in steps]
    return {
        "pretraining_share": share,
        "num_steps": num_steps,
        "explained_variance": 0.11,
        "value_bias": -0.012,
        "value_loss": losses[-1],
        "curve": [
            {
                "step": step,
                "value_loss": loss + 0.01,
                "held_out_value_loss": loss,
                "explained_variance": 0.1 - loss,
                "value_bias": -2.0 * math.exp(-step / 8),
            }
            for step, loss in zip(steps, losses, strict=True)
        ],
        "by_position": [
            {"position": (i + 0.5) / 20, "value": 0.1 + 0.005 * i - 0.1 / share, "return": 0.12, "count": 90}
            for i in range(20)
        ],
    }
