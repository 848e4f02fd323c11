"""The command line: finds the commands, parses, runs one, turns our errors into a message and an exit
code."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from vcppo import commands
from vcppo.errors import VcppoError

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, that of a VcppoError, 130 after Ctrl-C."""
    modules = _modules()
    args = _parser(modules).parse_args(arguments)
    try:
        code = modules[args.command].run(args)
        sys.stdout.flush()
    except VcppoError as error:
        print(f"vcppo {args.command}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"vcppo {args.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader (head, less) has gone: nobody is left to tell, not at the interpreter's end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return int(code or 0)


def _modules() -> dict[str, ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__))
    return {name: importlib.import_module(f"vcppo.commands.{name}") for name in names}


def _parser(modules: dict[str, ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m vcppo",
        description="Value-calibrated PPO as a pipeline: configuration, demo, lineage, grading.",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in modules.values():
        module.add_parser(subparsers)
    return parser
