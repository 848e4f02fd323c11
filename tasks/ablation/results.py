"""What the runs of a study left in data/ablation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.reporting.inputs import read_json, read_lines
from vcppo.config.ablation import AblationConfig
from vcppo.errors import DataError

Step = Mapping[str, Any]
"""Metrics of one training step, by the names of the values of tasks.train.PLOTTED."""


@dataclass(frozen=True)
class Run:
    """One row with one seed."""

    row: str
    seed_index: int
    seed: int
    stopped: bool
    guard: str | None
    """What stopped it."""
    reason: str | None
    last_step: int
    seconds: float
    fingerprint: str
    evaluations: Mapping[int, Mapping[str, Any]]
    """Held-out figures (tasks.evaluation.figures.benchmark_metrics) by step. Of a run that was stopped: of
    its last good checkpoint, if it has one."""
    steps: Sequence[Step]

    @property
    def final(self) -> Mapping[str, Any] | None:
        """The evaluation of the last step that has one."""
        return self.evaluations[max(self.evaluations)] if self.evaluations else None


@dataclass(frozen=True)
class Study:
    benchmark: str
    base: Mapping[str, Any]
    """Held-out figures of the SFT policy that all runs start from."""
    critics: Sequence[Mapping[str, Any]]
    """One per length of the value pretraining, shortest first."""
    runs: Sequence[Run]

    def of(self, row: str) -> list[Run]:
        """Runs of a row, in the order of their seeds."""
        return sorted((run for run in self.runs if run.row == row), key=lambda run: run.seed_index)


def read_study(folder: Path, ablation: AblationConfig) -> Study:
    """Read a study's published output; where there are several benchmarks, the first one.

    Raises DataError naming the file if one is missing or malformed, or a run is of no row.
    """
    evaluation = read_json(folder / "base.json").get("evaluation")
    if not evaluation:
        raise DataError(f"{folder / 'base.json'}: holds no evaluation of the SFT policy; run the study first")
    benchmark = next(iter(evaluation))
    names = [row.name for row in ablation.rows]
    runs = []
    for entry in _read_list(folder / "runs.json"):
        if entry["row"] not in names:
            raise DataError(
                f"{folder / 'runs.json'}: run of row {entry['row']!r}, rows of the configuration are "
                f"{', '.join(names)}; run the study again"
            )
        runs.append(_run(folder, entry, benchmark))
    if not runs:
        raise DataError(f"{folder / 'runs.json'}: holds no run; run the study first")
    critics = sorted(_read_list(folder / "critics.json"), key=lambda critic: critic["pretraining_share"])
    return Study(benchmark, evaluation[benchmark], critics, runs)


def number(values: Mapping[str, Any], key: str) -> float | None:
    """A finite number, or None where there is none."""
    value = values.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _run(folder: Path, entry: Mapping[str, Any], benchmark: str) -> Run:
    metrics = folder / "metrics" / entry["row"] / f"{entry['seed_index']}.jsonl"
    steps = read_lines(metrics)
    if not steps and entry["last_step"]:
        raise DataError(f"{metrics}: holds no step, {entry['last_step']} were trained; run the study again")
    return Run(
        row=entry["row"],
        seed_index=entry["seed_index"],
        seed=entry["seed"],
        stopped=entry["outcome"] == "stopped",
        guard=entry["guard"],
        reason=entry["reason"],
        last_step=entry["last_step"],
        seconds=entry["seconds"],
        fingerprint=entry["fingerprint"],
        evaluations={int(step): own[benchmark] for step, own in entry["evaluations"].items()},
        steps=steps,
    )


def _read_list(path: Path) -> list[dict[str, Any]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is no readable JSON file: {error}; run the study again") from None
    if not isinstance(value, list):
        raise DataError(f"{path}: holds {type(value).__name__}, expected a list; run the study again")
    return value
