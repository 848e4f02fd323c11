"""Commands sharded over Ray: so many at once, tried again where that can help. Imports no torch, no verl.

Each command is a process tree of its own on the node that Ray picks, so that two training runs (each with a
private Ray session, as `training.ray_session` starts it) cannot see each other. It reads and writes files:
the nodes of a cluster must share the file system that the workspace lies on.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.ray_session import ray_session
from vcppo.config import Runtime
from vcppo.errors import InfrastructureError, VcppoError, known_error
from vcppo.processes import FAILURE_FILE, end_group, start_group

BACK_OFF_SECONDS = 5.0
"""Before a command is tried again; doubled each time."""
END_SECONDS = 10.0


@dataclass(frozen=True)
class Command:
    """A command that leaves its results in files, and its failure record where FAILURE_FILE says."""

    name: str
    arguments: tuple[str, ...]
    folder: Path
    """Where it starts."""
    log: Path
    """What it prints, one attempt after the other."""


def run_commands(
    commands: Sequence[Command],
    runtime: Runtime,
    *,
    at_once: int,
    on_tick: Callable[[list[str]], None] = lambda running: None,
    tick_seconds: float = 15.0,
) -> Iterator[tuple[Command, VcppoError | None]]:
    """Run all commands; yields each as it ends, with the error that it ended with.

    on_tick: called every `tick_seconds` with the names of those that run. A command whose error is retryable
    runs again up to `runtime.retries` times.
    """
    with ray_session(runtime, num_cpus=at_once):
        import ray
        from ray.exceptions import RayError

        remote = ray.remote(_run_with_retries).options(
            num_cpus=1, max_retries=runtime.retries, scheduling_strategy="SPREAD"
        )
        waiting, running = list(reversed(commands)), dict[Any, Command]()
        while waiting or running:
            while waiting and len(running) < at_once:
                command = waiting.pop()
                running[remote.remote(command, runtime.retries)] = command
            done, _ = ray.wait(list(running), num_returns=1, timeout=tick_seconds)
            if not done:
                on_tick([command.name for command in running.values()])
            for reference in done:
                command = running.pop(reference)
                try:
                    yield command, ray.get(reference)
                except RayError as error:
                    yield command, InfrastructureError(f"{command.name}: its Ray worker was lost: {error}")


def _run_with_retries(command: Command, retries: int) -> VcppoError | None:
    """Runs on a Ray worker. Our errors are returned: raised, Ray would wrap them."""
    for attempt in range(retries + 1):
        error = _run_once(command)
        if error is None or not error.retryable or attempt == retries:
            return error
        time.sleep(BACK_OFF_SECONDS * 2**attempt)
    raise AssertionError("unreachable")


def _run_once(command: Command) -> VcppoError | None:
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="vcppo-") as scratch, command.log.open("ab") as log:
        failure_file = Path(scratch) / "failure.json"
        environment = {**_outside_ray(), FAILURE_FILE: str(failure_file)}
        process = start_group(command.arguments, cwd=command.folder, env=environment, stdout=log)
        try:
            code = process.wait()
        finally:
            end_group(process.pid, grace_seconds=END_SECONDS)
        if code == 0:
            return None
        return _error(command, code, failure_file)


def _outside_ray() -> dict[str, str]:
    """This worker's variables without those by which Ray ties a process to its session."""
    dropped = ("RAY_", "VCPPO_RAY_ADDRESS")
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def _error(command: Command, code: int, failure_file: Path) -> VcppoError:
    if failure_file.is_file():
        failure: dict[str, Any] = json.loads(failure_file.read_text(encoding="utf-8"))
        return known_error(failure, f"{command.name}: ") or VcppoError(
            f"{command.name}: {failure['class']}: {failure['message']}; see {command.log}"
        )
    if code < 0:
        return InfrastructureError(f"{command.name}: was killed by signal {-code}; see {command.log}")
    return VcppoError(f"{command.name}: ended with exit code {code} and no failure record; see {command.log}")
