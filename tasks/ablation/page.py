"""The report of a study: tables beside the paper's figures, findings, comparisons, curves, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tasks.ablation.charts import table_curves, value_by_position
from tasks.ablation.notes import notes
from tasks.ablation.pretraining import pretraining, share_label
from tasks.ablation.results import Study
from tasks.ablation.summary import REACHED
from tasks.ablation.text import plus_minus, verdict
from tasks.reporting.evaluation import interval, with_interval
from tasks.reporting.numbers import duration, figure, share, signed
from tasks.reporting.page import fill
from vcppo.config import Config, dump_yaml

Summary = Mapping[str, Any]
Row = Mapping[str, Any]
ARROW = "\N{RIGHTWARDS ARROW}"


def render(study: Study, summary: Summary, config: Config) -> str:
    """The page as HTML, a function of its arguments. summary: `tasks.ablation.summary.summarise` of both."""
    return fill("ablation.html.j2", values(study, summary, config))


def values(study: Study, summary: Summary, config: Config) -> dict[str, Any]:
    """Everything that the template names."""
    assert config.ablation is not None
    by_name = {row.name: row for row in config.ablation.rows}
    tables = []
    for index, table in enumerate(config.ablation.tables):
        own = [summary["rows"][name] for name in table.rows]
        tables.append(
            {
                "title": table.title,
                "results": results_table(own, study),
                "critic": ends_table(own, CRITIC),
                "policy": ends_table(own, POLICY),
                "curves": table_curves([by_name[name] for name in table.rows], study, f"table-{index}"),
            }
        )
    return {
        "profile": config.profile,
        "subject": subject(study, summary, config),
        "findings": summary["findings"],
        "tables": tables,
        "comparisons": list(comparison_rows(summary)),
        "positions": value_by_position(study, config),
        "critics": [critic_row(critic) for critic in study.critics],
        "pretraining": pretraining(study.critics),
        "runs": [run_row(by_name[run.row].label, run) for name in by_name for run in study.of(name)],
        "notes": notes(study, config),
        "configuration": dump_yaml(config),
    }


def subject(study: Study, summary: Summary, config: Config) -> str:
    """What was done, in a sentence or two."""
    rows = summary["rows"].values()
    runs, stopped = len(study.runs), sum(row["num_stopped"] for row in rows)
    base = study.base
    return (
        f"{runs} runs in {len(rows)} rows on a {config.model.kind} model, all from one SFT policy with "
        f"accuracy {with_interval(base)} and {figure(float(base['mean_response_tokens']))} tokens per "
        f"response on {study.benchmark}. {runs - stopped} runs finished, a guard stopped {stopped}. "
        f"All runs together: {duration(sum(run.seconds for run in study.runs))}."
    )


def results_table(rows: Sequence[Row], study: Study) -> dict[str, Any]:
    """Held-out accuracy and length of each row beside the paper's figure, the SFT policy first; without the
    paper's column where it has no figure for any row."""
    has_paper = any(row["paper"] is not None for row in rows)
    last = max((run.last_step for run in study.runs), default=0)
    steps = sorted({int(step) for row in rows for step in row["accuracy_at"]} - {last})
    base = study.base
    lines = [
        {
            "label": "SFT policy",
            "cells": [
                figure(None), *(figure(None) for _ in steps), with_interval(base),
                *[figure(None)] * has_paper, figure(float(base["mean_response_tokens"])),
                figure(None), figure(None), figure(None),
            ],
        }
    ]  # fmt: skip
    for row in rows:
        at = [plus_minus(row["accuracy_at"].get(str(step))) for step in steps]
        paper = figure(None) if row["paper"] is None else f"{row['paper']:.1f} %"
        per_run = duration(row["seconds"] / row["num_runs"]) if row["num_runs"] else figure(None)
        cells = [
            figure(row["num_runs"]), *at, plus_minus(row["accuracy"]), *[paper] * has_paper,
            plus_minus(row["length"]),
            figure(row["first_step_reached"]), guards(row), per_run,
        ]  # fmt: skip
        lines.append({"label": row["label"], "cells": cells})
    columns = [
        "runs", *(f"accuracy at step {step}" for step in steps), "accuracy at the end",
        *["paper: AIME 2024"] * has_paper, "tokens at the end", f"{REACHED:g} in training from step",
        "guards", "time per run",
    ]  # fmt: skip
    return {"columns": columns, "rows": lines}


def guards(row: Row) -> str:
    """Which guards stopped or warned, and in how many runs."""
    stopped = [f"{name} stopped {count}" for name, count in row["stopped_by"].items()]
    warned = [
        f"{name} warned in {own['runs']}, first at step {own['first_step']}"
        for name, own in row["guard_warnings"].items()
    ]
    return "; ".join([*stopped, *warned]).replace("_", " ") or "none"


Measures = tuple[tuple[str, str, bool], ...]
"""Name in the summary, name in the table, whether it has a sign."""
CRITIC: Measures = (
    ("value_bias", "value bias", True),
    ("explained_variance", "explained variance", True),
    ("stopping_advantage", "advantage of stopping", True),
)
POLICY: Measures = (
    ("stopping_hazard", "hazard of stopping", False),
    ("entropy", "entropy", False),
    ("kl_to_sft", "KL to SFT", False),
)


def ends_table(rows: Sequence[Row], measures: Measures) -> dict[str, Any]:
    """Measures at the first and at the last step; columns that no row has are left out."""
    columns: list[tuple[str, Callable[[Row], str]]] = []
    for name, label, sign in measures:
        for end, when in (("first", "at step 1"), ("last", "at the end")):
            if any(row[name][end] for row in rows):

                def cell(row: Row, name: str = name, end: str = end, sign: bool = sign) -> str:
                    return plus_minus(row[name][end], sign=sign)

                columns.append((f"{label} {when}", cell))
    return {
        "columns": [column for column, _ in columns],
        "rows": [{"label": row["label"], "cells": [cell(row) for _, cell in columns]} for row in rows],
    }


def comparison_rows(summary: Summary) -> Iterator[dict[str, str]]:
    """A line for each comparison and step, the end last."""
    for pair in summary["comparisons"]:
        better, worse = (summary["rows"][pair[side]]["label"] for side in ("better", "worse"))
        # the last step that both were evaluated at is the end
        steps = list(pair["at"].items())[:-1]
        for when, mean in [*((f"step {step}", mean) for step, mean in steps), ("end", pair["end"])]:
            ends = mean and mean["low"] is not None
            yield {
                "better": better,
                "worse": worse,
                "when": when,
                "pairs": figure(mean["n"] if mean else 0),
                "difference": signed(mean["mean"]) if mean else figure(None),
                "interval": interval(mean["low"], mean["high"], signed) if mean and ends else figure(None),
                "verdict": verdict(mean),
            }


def critic_row(critic: Mapping[str, Any]) -> dict[str, Any]:
    """One value pretraining in a line."""
    ends = (critic["curve"][0], critic["curve"][-1]) if critic["curve"] else ({}, {})
    losses = [figure(end.get("held_out_value_loss")) for end in ends]
    return {
        "label": share_label(critic),
        "cells": [
            f" {ARROW} ".join(losses), figure(critic["explained_variance"]),
            figure(None) if critic["value_bias"] is None else signed(critic["value_bias"]),
        ],
    }  # fmt: skip


def run_row(label: str, run: Any) -> dict[str, Any]:
    """One run in a line."""
    final = run.final
    outcome = f"stopped: {run.guard or ''} {run.reason or ''}" if run.stopped else "finished"
    return {
        "label": label,
        "seed": figure(run.seed),
        "outcome": outcome,
        "last_step": figure(run.last_step),
        "accuracy": share(final["average_at_k"]) if final else figure(None),
        "tokens": figure(float(final["mean_response_tokens"])) if final else figure(None),
        "time": duration(run.seconds),
        "fingerprint": run.fingerprint,
    }
