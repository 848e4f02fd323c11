"""Stage ablation_report: the figures of the ablation study, its curves, and one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.ablation.page import render
from tasks.ablation.results import read_study
from tasks.ablation.summary import PLOT_COLUMNS, plot_rows, summarise
from tasks.plots import write_csv
from tasks.stage import StageContext
from vcppo.config import study_of
from vcppo.files import write_json_atomic, write_text_atomic

STUDY = Path("data/ablation")
REPORT = "ablation/report"


def run(context: StageContext) -> Mapping[str, Any]:
    """Write metrics/ablation.json, plots/ablation.csv and the page, a function of the stage's inputs.

    Raises ConfigurationError (a profile without a section `ablation`) and DataError (a malformed input).
    """
    config = context.config
    study = read_study(STUDY, study_of(config))
    summary = summarise(study, config)
    page = render(study, summary, config)
    write_json_atomic(context.out("metrics/ablation.json"), summary)
    write_csv(context.out("plots/ablation.csv"), PLOT_COLUMNS, plot_rows(study, config))
    write_text_atomic(context.out(REPORT) / "index.html", page)
    failed = [finding["claim"] for finding in summary["findings"] if finding["holds"] is False]
    for claim in failed:
        context.say(f"does not hold: {claim}")
    context.say(f"{REPORT}/index.html")
    stopped = sum(run.stopped for run in study.runs)
    holding = sum(finding["holds"] is True for finding in summary["findings"])
    return {
        "runs": len(study.runs),
        "runs_stopped": stopped,
        "findings_that_hold": holding,
        "findings_that_do_not": len(failed),
    }
