"""`demo`: the whole pipeline on one profile, with the stages' own output, and a last screen that says what
came out."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

EVALUATION = Path("metrics/evaluate.json")
PLACES = (
    ("report", "reports"),
    ("policy", "models/policy"),
    ("critic", "models/critic"),
    ("samples", "data/evaluation"),
    ("records", "records"),
)


def add_parser(subparsers: Any) -> None:
    """Add `demo [--profile NAME]`."""
    parser = subparsers.add_parser(
        "demo",
        help="run the whole pipeline on a profile and show what came out",
        description="Run the whole pipeline with `dvc repro`: in this checkout if params.yaml holds the "
        "profile, otherwise on committed code in runs/NAME. What is up to date is skipped; Ctrl-C ends it, "
        "and the next run goes on where it was.",
    )
    parser.add_argument("--profile", metavar="NAME", default="tiny", help="a shipped profile (default: tiny)")


def run(args: argparse.Namespace) -> None:
    """Run the pipeline. Raises the error of the stage that failed."""
    from vcppo.reproduce import reproduce
    from vcppo.workspace import ROOT_VARIABLE, checkout_root

    started, peak = time.monotonic(), PeakMemory()
    with _workspace(args.profile) as workspace:
        print(f"profile {args.profile} in {workspace}", flush=True)
        reproduce(
            workspace,
            on_line=lambda line: print(line, flush=True),
            on_tick=peak.sample,
            environment={ROOT_VARIABLE: str(checkout_root())},
        )
        show_results(workspace, args.profile, time.monotonic() - started, peak.megabytes)


class PeakMemory:
    """Largest resident memory of a process tree over the samples taken, in megabytes (pages that processes
    share count in each)."""

    def __init__(self) -> None:
        self.megabytes = 0.0

    def sample(self, process_id: int) -> None:
        """Add up the tree of a process as it is now."""
        import psutil

        total = 0
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(process_id)
            for member in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    total += member.memory_info().rss
        self.megabytes = max(self.megabytes, total / 1e6)


@contextlib.contextmanager
def _workspace(profile: str) -> Iterator[Path]:
    """This checkout if its params.yaml holds the profile, else the profile's own workspace."""
    from vcppo.config import load_params, load_profile
    from vcppo.workspace import checkout_root, open_workspace

    root = checkout_root()
    wanted = load_profile(profile)
    params = root / "params.yaml"
    if params.is_file() and load_params(params) == wanted:
        yield root
        return
    with open_workspace(profile, root) as workspace:
        yield workspace


def show_results(workspace: Path, profile: str, seconds: float, peak_megabytes: float) -> None:
    """The last screen: accuracy before and after, where things lie, what it cost, what to try next."""
    from rich.console import Console
    from rich.panel import Panel

    from vcppo.config import load_params

    config = load_params(workspace / "params.yaml")
    shown = {name: _shown(workspace / place) for name, place in PLACES if (workspace / place).exists()}
    console = Console(highlight=False)
    console.print()
    console.print(
        Panel(
            f"[bold]{config.train.algorithm}[/bold] on a {config.model.kind} model, profile {profile}, seed "
            f"{config.seed}: {config.train.num_steps} steps of {config.train.prompts_per_step} prompts, "
            f"critic from {config.train.critic_start}",
            title="Trained",
            title_align="left",
        )
    )
    console.print(evaluation_table(json.loads((workspace / EVALUATION).read_text(encoding="utf-8"))))
    for name, place in shown.items():
        console.print(f"  {name:9s}{place}", soft_wrap=True)
    memory = f"{peak_megabytes / 1000:.1f} GB" if peak_megabytes else "not sampled"
    console.print(f"  {'cost':9s}{seconds:.0f} s, peak resident memory {memory}")
    console.print("\nNext:")
    for command, why in _next_commands(shown):
        console.print(f"  {command}\n      [dim]{why}[/dim]", soft_wrap=True)


def evaluation_table(evaluation: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    """Accuracy before and after, with 95 % intervals, one row per benchmark (metrics/evaluate.json)."""
    from rich.table import Table

    table = Table(title="Held-out accuracy (avg@k, 95 % interval)", title_justify="left")
    for heading in ("benchmark", "before", "after", "problems x k"):
        table.add_column(heading, no_wrap=heading in ("before", "after"))
    for benchmark, after in evaluation["after"].items():
        before = evaluation["before"][benchmark]
        table.add_row(
            benchmark,
            with_interval(before),
            with_interval(after),
            f"{after['num_problems']} x {after['samples_per_problem']}",
        )
    return table


def with_interval(row: Mapping[str, Any]) -> str:
    """`0.532 [0.470, 0.594]`."""
    low, high = row["interval_95"]
    return f"{row['average_at_k']:.3f} \\[{low:.3f}, {high:.3f}]"


def _shown(path: Path) -> str:
    pages = sorted(path.glob("*.html")) if path.is_dir() else []
    path = pages[0] if pages else path
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def _next_commands(shown: Mapping[str, str]) -> list[tuple[str, str]]:
    policy = shown.get("policy", "models/policy")
    python = _shown(Path(sys.executable))
    return [
        (f"{python} -m vcppo lineage {policy}", "code, configuration and data that made the policy"),
        (f"{python} -m vcppo config list", "other profiles; `make demo PROFILE=NAME` runs one"),
        ("make up", "Prefect server and worker: nightly runs, watched in the browser"),
    ]
