"""`python -m tasks NAME`: run one stage of the pipeline in this workspace."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tasks.ending import exit_code
from tasks.stage import run_stage
from vcppo.pipeline import load_stage
from vcppo.processes import PARENT, die_with_parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tasks", description="Run one stage of the pipeline.")
    parser.add_argument("stage", metavar="NAME", help="a stage of dvc.yaml: prepare, validate, sft, ...")
    name = parser.parse_args(arguments).stage
    die_with_parent(int(os.environ.get(PARENT, os.getppid())))

    def work() -> None:
        load_stage(name)
        run_stage(name, importlib.import_module(f"tasks.{name}").run, log_to)

    return exit_code(name, work)


def log_to(path: Path) -> None:
    """Copy everything written to stdout and stderr from here on, by us and our children, to a file as well.

    A process of its own does the copying, so that the last lines of a killed stage are still written.
    """
    # SIGINT and SIGTERM go to the whole group; the copier must outlive us to copy our last lines
    copier = subprocess.Popen(
        ["tee", "-a", "-i", str(path)],
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    )
    assert copier.stdin is not None
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(copier.stdin.fileno(), 1)
    os.dup2(copier.stdin.fileno(), 2)
    copier.stdin.close()


if __name__ == "__main__":
    sys.exit(main())
