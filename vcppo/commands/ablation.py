"""`ablation`: a study on one or more profiles, with the stages' own output, and its table at the end."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcppo.config import Config

PROFILES = ("ablation", "independent-steps")
REPORT = Path("ablation/report/index.html")
METRICS = Path("metrics/ablation.json")


def add_parser(subparsers: Any) -> None:
    """Add `ablation [--profile NAME ...]`."""
    parser = subparsers.add_parser(
        "ablation",
        help="training runs side by side: the paper's tables in miniature",
        description="Run the study of each profile with `dvc repro ablation/dvc.yaml`, on committed code in "
        "runs/NAME. Runs that have finished are kept, so Ctrl-C loses little and the next call runs what is "
        "missing. VCPPO_RUNS_AT_ONCE says how many run side by side.",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        nargs="+",
        default=list(PROFILES),
        help=f"profiles with a section `ablation` (default: {' '.join(PROFILES)})",
    )


def run(args: argparse.Namespace) -> None:
    """Run the studies one after the other. Raises ConfigurationError for a profile without one, before any
    has begun, and the error of the stage that failed."""
    from vcppo.config import load_profile
    from vcppo.errors import ConfigurationError
    from vcppo.pipeline import ABLATION
    from vcppo.reproduce import reproduce
    from vcppo.workspace import ROOT_VARIABLE, checkout_root, open_workspace

    configs = {name: load_profile(name) for name in dict.fromkeys(args.profile)}
    without = [name for name, config in configs.items() if config.ablation is None]
    if without:
        raise ConfigurationError(
            f"--profile: {', '.join(without)} has no section `ablation`, allowed is a profile with one "
            f"({', '.join(PROFILES)})"
        )
    root = checkout_root()
    for name, config in configs.items():
        started = time.monotonic()
        with open_workspace(name, root) as workspace:
            print(f"study {name} in {workspace}", flush=True)
            reproduce(
                workspace,
                file=ABLATION,
                on_line=lambda line: print(line, flush=True),
                environment={ROOT_VARIABLE: str(root)},
            )
            show(workspace, config, time.monotonic() - started)


def show(workspace: Path, config: Config, seconds: float) -> None:
    """The tables and findings of a study, where its page lies, and what this call cost."""
    from rich.console import Console

    study = json.loads((workspace / METRICS).read_text(encoding="utf-8"))
    console = Console(highlight=False)
    for table in tables(config, study):
        console.print()
        console.print(table)
    console.print("\nFindings")
    for finding in study["findings"]:
        verdict = {True: "holds", False: "FAILS", None: "not to be told"}[finding["holds"]]
        console.print(f"  {verdict:15s}{finding['claim']}\n{'':17s}{finding['evidence']}", soft_wrap=True)
    console.print(f"\n  report  {workspace / REPORT}\n  cost    {seconds:.0f} s", soft_wrap=True)


def tables(config: Config, study: Mapping[str, Any]) -> list[Any]:
    """A table for each of `config.ablation.tables`: accuracy, length, the paper's figure."""
    from rich.table import Table

    assert config.ablation is not None
    rows = {row.name: row for row in config.ablation.rows}
    shown = []
    for declared in config.ablation.tables:
        table = Table(title=declared.title, title_justify="left")
        for heading in ("row", "runs", "accuracy", "length", "paper, AIME 2024 %"):
            table.add_column(heading)
        for name in declared.rows:
            measured = study["rows"][name]
            paper = rows[name].paper
            table.add_row(
                rows[name].label,
                str(measured["num_runs"]),
                with_interval(measured["accuracy"], 3),
                with_interval(measured["length"], 1),
                "-" if paper is None else f"{paper:g}",
            )
        shown.append(table)
    return shown


def with_interval(estimate: Mapping[str, Any] | None, digits: int) -> str:
    """`0.912 \u00b1 0.013` (95 %)."""
    if estimate is None:
        return "-"
    mean, low = estimate["mean"], estimate["low"]
    return f"{mean:.{digits}f}" + ("" if low is None else f" \u00b1 {mean - low:.{digits}f}")
