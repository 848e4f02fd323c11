"""The command line: finds the commands, parses, runs one, turns our errors into a message and an exit
code."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from vcppo import commands
from vcppo.errors import StorageError, VcppoError
from vcppo.files import storage_errors

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, that of a VcppoError, 6 if its output cannot be written, 130
    after Ctrl-C."""
    if sys.stderr is None:  # closed by the caller; messages must not go to standard output instead
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  as long as the process
    if sys.stdout is None:
        return _tell("vcppo", StorageError("standard output is closed; give the command one (or /dev/null)"))
    parser = _parser(modules := _modules())
    try:
        with storage_errors(Path("standard output")):  # whose errors name no file
            try:
                args = parser.parse_args(arguments)
                return _run(modules[args.command], args)
            finally:
                sys.stdout.flush()
    except StorageError as error:
        return _tell("vcppo", error)
    except BrokenPipeError:
        return BROKEN_PIPE  # the reader (head, less) has gone: nobody is left to tell
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.EBADF, errno.EIO):
            raise
        return _tell("vcppo", StorageError(f"standard output: cannot be written: {error.strerror}"))
    finally:
        _drop_what_cannot_be_written()


def _run(module: ModuleType, args: argparse.Namespace) -> int:
    try:
        return int(module.run(args) or 0)
    except VcppoError as error:
        return _tell(f"vcppo {args.command}", error)
    except KeyboardInterrupt:
        print(f"vcppo {args.command}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _tell(who: str, error: VcppoError) -> int:
    with contextlib.suppress(OSError):  # the exit code says it too
        print(f"{who}: {error}", file=sys.stderr)
    return error.exit_code


def _drop_what_cannot_be_written() -> None:
    """The interpreter writes what is left at its end, and would complain then."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
