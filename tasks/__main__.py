"""`python -m tasks NAME`: run one stage of the pipeline in this workspace."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tasks.stage import failure, run_stage
from vcppo.errors import ConfigurationError, VcppoError
from vcppo.pipeline import load_stage
from vcppo.processes import PARENT, die_with_parent, leave_failure

INTERRUPTED = 130
OURS = ("tasks", "training", "vcppo")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tasks", description="Run one stage of the pipeline.")
    parser.add_argument("stage", metavar="NAME", help="a stage of dvc.yaml: prepare, validate, sft, ...")
    name = parser.parse_args(arguments).stage
    die_with_parent(int(os.environ.get(PARENT, os.getppid())))
    try:
        load_stage(name)
        run_stage(name, importlib.import_module(f"tasks.{name}").run, log_to)
    except VcppoError as error:
        leave_failure(failure(error))
        print(f"[{name}] {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"[{name}] interrupted; run again to go on", file=sys.stderr, flush=True)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in OURS:
            raise
        print(
            f"[{name}] {sys.executable}: has no package {error.name!r}; the stages need the environment of "
            "`make setup`: run `. .venv/bin/activate` first, then again",
            file=sys.stderr,
        )
        return ConfigurationError.exit_code
    except Exception as error:
        leave_failure(failure(error))
        raise
    return 0


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
