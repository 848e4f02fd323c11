"""A study in figures: means over seeds with 95 % t-intervals, paired differences, findings.

Everything here is a pure function of what `results` read. A mean over seeds is
{"mean", "low", "high", "n"}, or None where no run has the number; low and high are None for a single seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tasks.ablation.findings import findings
from tasks.ablation.results import Run, Study, number
from tasks.train import PLOTTED
from vcppo.config import Config
from vcppo.config.ablation import AblationComparison, AblationRow
from vcppo.statistics import mean_interval

REACHED = 0.9
"""Training accuracy that counts as solved."""
FIRST_AND_LAST = (
    "value_bias",
    "explained_variance",
    "stopping_advantage",
    "stopping_hazard",
    "entropy",
    "kl_to_sft",
)
"""Names in tasks.train.PLOTTED whose first and last step stand in the summary."""
POSITION_BINS = 10

Mean = dict[str, Any]


def summarise(study: Study, config: Config) -> dict[str, Any]:
    """metrics/ablation.json."""
    assert config.ablation is not None
    summary: dict[str, Any] = {
        "benchmark": study.benchmark,
        "base": dict(study.base),
        "critics": {
            f"{critic['pretraining_share']:g}": {
                key: critic[key] for key in ("num_steps", "explained_variance", "value_bias", "value_loss")
            }
            for critic in study.critics
        },
        "rows": {row.name: row_summary(row, study.of(row.name)) for row in config.ablation.rows},
        "comparisons": [comparison(pair, study) for pair in config.ablation.comparisons],
    }
    return summary | {"findings": findings(summary, config)}


def row_summary(row: AblationRow, runs: Sequence[Run]) -> dict[str, Any]:
    """One row: `accuracy` and `length` are held-out ones at each run's last evaluation, `*_at` by step;
    lengths in tokens, values in units of the reward, entropy and KL in nats per token, seconds of all runs.
    """
    stopped = Counter(run.guard or "unknown" for run in runs if run.stopped)
    summary: dict[str, Any] = {
        "label": row.label,
        "paper": row.paper,
        "num_runs": len(runs),
        "num_stopped": sum(stopped.values()),
        "stopped_by": dict(sorted(stopped.items())),
        "guard_warnings": guard_warnings(runs),
        "accuracy": mean_of(number(run.final or {}, "average_at_k") for run in runs),
        "length": mean_of(number(run.final or {}, "mean_response_tokens") for run in runs),
        "accuracy_at": {},
        "length_at": {},
        "first_step_reached": first_step_reached(runs),
        "seconds": sum(run.seconds for run in runs),
    }
    for step in evaluated(runs):
        own = [run.evaluations.get(step, {}) for run in runs]
        summary["accuracy_at"][str(step)] = mean_of(number(e, "average_at_k") for e in own)
        summary["length_at"][str(step)] = mean_of(number(e, "mean_response_tokens") for e in own)
    for name in FIRST_AND_LAST:
        key = PLOTTED[name]
        summary[name] = {
            "first": mean_of(number(run.steps[0], key) for run in runs if run.steps),
            "last": mean_of(number(run.steps[-1], key) for run in runs if run.steps),
        }
    return summary


def evaluated(runs: Sequence[Run]) -> list[int]:
    """Steps at which the runs were evaluated by plan; a last good checkpoint elsewhere is none of them."""
    planned = [run for run in runs if not run.stopped] or runs
    return sorted({step for run in planned for step in run.evaluations})


def guard_warnings(runs: Sequence[Run]) -> dict[str, dict[str, int]]:
    """Of each guard that warned: in how many runs, and the first step at which it did in any."""
    first: dict[str, dict[int, int]] = {}
    for index, run in enumerate(runs):
        for line in run.steps:
            for key in line:
                if key.startswith("guard/") and number(line, key):
                    first.setdefault(key.removeprefix("guard/"), {}).setdefault(index, int(line["step"]))
    return {
        guard: {"runs": len(steps), "first_step": min(steps.values())}
        for guard, steps in sorted(first.items())
    }


def first_step_reached(runs: Sequence[Run]) -> int | None:
    """First step whose mean training accuracy over the seeds is at least `REACHED`, or None."""
    means = seed_means(runs, PLOTTED["accuracy"])
    return next((step for step, mean in means.items() if mean["mean"] >= REACHED), None)


def seed_means(runs: Sequence[Run], key: str) -> dict[int, Mean]:
    """A metric by step, over the runs that have it there (a stopped run has no later steps)."""
    values: dict[int, list[float]] = {}
    for run in runs:
        for line in run.steps:
            if (value := number(line, key)) is not None:
                values.setdefault(int(line["step"]), []).append(value)
    return {step: asdict(mean_interval(values[step])) for step in sorted(values)}


def first_by_position(runs: Sequence[Run], name: str) -> list[Mean | None]:
    """`value`, `return` or `advantage` at the first step, in `POSITION_BINS` bins of relative position."""
    return [
        mean_of(number(run.steps[0], f"position/{name}_{index}") for run in runs if run.steps)
        for index in range(POSITION_BINS)
    ]


def comparison(pair: AblationComparison, study: Study) -> dict[str, Any]:
    """`better` minus `worse` in held-out accuracy, run by run of the same seed: at the end, and at each step
    at which both were evaluated."""
    better, worse = study.of(pair.better), study.of(pair.worse)
    by_seed = {run.seed_index: run for run in worse}
    pairs = [(run, by_seed[run.seed_index]) for run in better if run.seed_index in by_seed]
    steps = sorted(set(evaluated(better)) & set(evaluated(worse)))
    return {
        "better": pair.better,
        "worse": pair.worse,
        "end": _difference((a.final, b.final) for a, b in pairs),
        "at": {
            str(step): _difference((a.evaluations.get(step), b.evaluations.get(step)) for a, b in pairs)
            for step in steps
        },
    }


def _difference(pairs: Iterable[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]) -> Mean | None:
    accuracies = [(number(a or {}, "average_at_k"), number(b or {}, "average_at_k")) for a, b in pairs]
    return mean_of(a - b for a, b in accuracies if a is not None and b is not None)


def mean_of(values: Iterable[float | None]) -> Mean | None:
    """Mean and 95 % t-interval of the numbers that are there."""
    numbers = [value for value in values if value is not None]
    return asdict(mean_interval(numbers)) if numbers else None


PLOT_COLUMNS = ("row", "step", "num_runs", *PLOTTED)


def plot_rows(study: Study, config: Config) -> Iterator[dict[str, Any]]:
    """plots/ablation.csv: a line a row and step, the mean over the seeds of every training metric."""
    assert config.ablation is not None
    for row in config.ablation.rows:
        runs = study.of(row.name)
        counts = Counter(int(line["step"]) for run in runs for line in run.steps)
        means = {name: seed_means(runs, key) for name, key in PLOTTED.items()}
        for step in sorted(counts):
            own = {name: by_step[step]["mean"] for name, by_step in means.items() if step in by_step}
            yield {"row": row.name, "step": step, "num_runs": counts[step], **own}
