"""The local Prefect server and worker of a checkout: started detached, known by process id and start time.

Everything that they keep (database, logs, who runs) lies in `.prefect/` of the checkout. The server answers
on the loopback only. For a shared server use PostgreSQL instead (infra/): SQLite locks up under load
(PrefectHQ/prefect #18934).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vcppo.errors import ConfigurationError, InfrastructureError
from vcppo.files import storage_errors, write_json_atomic
from vcppo.processes import end_group
from vcppo.reproduce import stage_environment
from vcppo.workdir import is_locked, lock_file
from vcppo.workspace import ROOT_VARIABLE

HOST = "127.0.0.1"
DEFAULT_PORT = 4200
POOL = "vcppo"
START_SECONDS = 180.0
END_SECONDS = 15.0
LOG_TAIL_LINES = 15


@dataclass(frozen=True)
class Service:
    """A process that we started. Its start time tells it from a later process with the same id."""

    name: str
    process_id: int
    started: float
    port: int

    def alive(self) -> bool:
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.process_id)
            return process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE
        return False


def up(root: Path, port: int) -> None:
    """Start server and worker if they do not run, deploy everything in prefect.yaml, print the address.

    Raises ConfigurationError if the port is taken or Prefect is not installed, InfrastructureError if a
    process does not come up (with the last lines of its log).
    """
    if importlib.util.find_spec("prefect") is None:
        raise ConfigurationError("prefect is not installed; `make setup` installs it (extra `flows`)")
    with _only_one(root):
        running = {service.name: service for service in _read(root) if service.alive()}
        other = [service for service in running.values() if service.port != port]
        if other:
            raise ConfigurationError(
                f"port: got {port}, but this checkout's server runs on {other[0].port}; "
                "`python -m flows down` first"
            )
        address, environment = f"http://{HOST}:{port}", _environment(root, port)
        if "server" not in running:
            _refuse_taken_port(port)
            command = ["server", "start", "--host", HOST, "--port", str(port)]
            running["server"] = _start(root, "server", port, command, environment)
            _write(root, running)
        _wait(root, running["server"], lambda: _answers(f"{address}/api/health"))
        if "worker" not in running:
            _close_abandoned_runs(root, address)
            command = ["worker", "start", "--pool", POOL, "--type", "process", "--name", f"{POOL}-worker"]
            running["worker"] = _start(root, "worker", port, command, environment)
            _write(root, running)
        _wait(root, running["worker"], lambda: _answers(f"{address}/api/work_pools/{POOL}"))
        _deploy(root, environment)
    print(f"Prefect is up: {address}  (logs in {_home(root)})")
    if port != DEFAULT_PORT:
        print(f"prefect.toml names port {DEFAULT_PORT}: export PREFECT_API_URL={address}/api")
    prefect = Path(sys.executable).with_name("prefect")
    print(f"A run: {prefect} deployment run 'nightly/nightly' --param profile=tiny --watch")
    print(f"What it makes lies in {root / 'runs'}/PROFILE")


def down(root: Path) -> None:
    """End the worker with the runs that it has, then the server: only processes that we started."""
    with _only_one(root):
        services = {service.name: service for service in _read(root)}
        for name in ("worker", "server"):
            service = services.get(name)
            if service and service.alive():
                end_group(service.process_id, grace_seconds=END_SECONDS)
                if name == "worker":
                    _close_abandoned_runs(root, f"http://{HOST}:{service.port}")
                print(f"ended {name} (process {service.process_id})")
            else:
                print(f"{name} did not run")
        _write(root, {})


def _home(root: Path) -> Path:
    return root / ".prefect"


@contextlib.contextmanager
def _only_one(root: Path) -> Iterator[None]:
    with storage_errors(_home(root)):
        _home(root).mkdir(exist_ok=True)
        lock = lock_file(
            _home(root) / "lock", f"{_home(root)}: another `flows up` or `flows down` is at work"
        )
    with lock:
        lock.truncate(0)
        lock.write(f"process {os.getpid()}\n")
        lock.flush()
        yield


def _environment(root: Path, port: int) -> dict[str, str]:
    return {
        **stage_environment(),
        "PREFECT_HOME": str(_home(root)),
        "PREFECT_API_URL": f"http://{HOST}:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "DO_NOT_TRACK": "1",
        ROOT_VARIABLE: str(root),
    }


def _start(root: Path, name: str, port: int, command: list[str], environment: Mapping[str, str]) -> Service:
    import psutil

    with (_home(root) / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *command],
            cwd=root,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    print(f"starting {name} (process {process.pid})", flush=True)
    return Service(name, process.pid, psutil.Process(process.pid).create_time(), port)


def _wait(root: Path, service: Service, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if not service.alive():
            raise InfrastructureError(
                f"{service.name} ended before it was ready; its last lines:\n{_tail(root, service)}"
            )
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"{service.name} is not ready after {START_SECONDS:g} s; `python -m flows down` ends it; "
                f"its last lines:\n{_tail(root, service)}"
            )
        time.sleep(0.5)


def _deploy(root: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        cwd=root,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ConfigurationError(
            f"prefect.yaml: cannot be deployed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )


def _close_abandoned_runs(root: Path, address: str) -> None:
    """Mark runs as crashed that no worker runs any more: they would keep their concurrency slot for ever.

    While anything holds a workspace, nothing is marked: a flow may have outlived its worker.
    """
    if any(is_locked(lock) for lock in (root / "runs").glob(".*.lock")):
        return
    active = {"state": {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}}
    found = _post(
        f"{address}/api/flow_runs/filter", {"flow_runs": active, "work_pools": {"name": {"any_": [POOL]}}}
    )
    crashed = {"type": "CRASHED", "name": "Crashed", "message": "Its worker has ended."}
    for run in found or []:
        if (
            _post(f"{address}/api/flow_runs/{run['id']}/set_state", {"state": crashed, "force": True})
            is not None
        ):
            print(f"run {run['name']} had no worker any more: marked as crashed")


def _post(url: str, body: Mapping[str, Any]) -> Any:
    """The answer to a JSON request, None if there is none."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())
    return None


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False


def _refuse_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"port: got {port}, which cannot be used ({error}); end the program that has it, or choose "
                "another: `python -m flows up --port N`"
            ) from None


def _tail(root: Path, service: Service) -> str:
    lines = (_home(root) / f"{service.name}.log").read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-LOG_TAIL_LINES:])


def _read(root: Path) -> list[Service]:
    path = _home(root) / "services.json"
    return (
        [Service(**values) for values in json.loads(path.read_text(encoding="utf-8"))]
        if path.is_file()
        else []
    )


def _write(root: Path, services: Mapping[str, Service]) -> None:
    write_json_atomic(_home(root) / "services.json", [asdict(service) for service in services.values()])
