"""The flows on a real local Prefect server: deployed, run by a worker, retried where that helps, ended."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.services import DEFAULT_PORT
from tests.toy import commit, environment, make_checkout, python, working_in
from vcppo.files import sha256_path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PREFECT = str(Path(sys.executable).parent / "prefect")
FLOW = "from flows.{name} import {name}; print('RETURNED', {name}(profile='tiny', retries=2))"


@dataclass
class Server:
    """A checkout whose Prefect server and worker run."""

    checkout: Path
    trouble: Path
    port: int

    def variables(self) -> dict[str, str]:
        return {
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_HOME": str(self.checkout / ".prefect"),
            "TOY_TROUBLE": str(self.trouble),
        }

    def flow(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a flow in a process of its own, as the worker does."""
        return python(self.checkout, "-c", FLOW.format(name=name), **self.variables())

    def ask(self, path: str, **body: Any) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}",
            json.dumps(body).encode() if body else None,
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def services(self) -> list[dict[str, Any]]:
        values: list[dict[str, Any]] = json.loads((self.checkout / ".prefect" / "services.json").read_text())
        return values


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("flows")
    (folder / "trouble").mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = Server(make_checkout(folder / "checkout"), folder / "trouble", port)
    try:
        up = python(
            running.checkout, "-m", "flows", "up", "--port", str(port), TOY_TROUBLE=str(running.trouble)
        )
        assert up.returncode == 0, up.stdout + up.stderr
        assert f"Prefect is up: http://127.0.0.1:{port}" in up.stdout
        yield running
    finally:
        python(running.checkout, "-m", "flows", "down")


def test_every_deployment_of_prefect_yaml_stands_with_schedule_limit_and_pool(server: Server) -> None:
    deployed = {d["name"]: d for d in server.ask("deployments/filter", deployments={})}
    assert set(deployed) == {"nightly", "train", "evaluate", "ablation"}
    for name, deployment in deployed.items():
        assert deployment["entrypoint"] == f"flows.{name}.{name}"
        assert deployment["work_pool_name"] == "vcppo"
        assert deployment["global_concurrency_limit"]["limit"] == 1
        assert deployment["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    (schedule,) = deployed["nightly"]["schedules"]
    assert schedule["schedule"]["cron"] == "0 2 * * *" and schedule["schedule"]["timezone"] == "UTC"
    assert deployed["train"]["schedules"] == []


def test_the_typed_nightly_run_survives_a_killed_stage_and_leaves_logs_and_artifacts(
    server: Server,
) -> None:
    (server.trouble / "kill").touch()
    run = subprocess.run(
        [PREFECT, "deployment", "run", "nightly/nightly", "--param", "profile=tiny", "--watch"],
        cwd=server.checkout,
        env=environment(**server.variables()),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert not (server.trouble / "kill").exists()

    workspace = server.checkout / "runs" / "tiny"
    train = json.loads((workspace / "records" / "train.json").read_text())
    assert [attempt["outcome"] for attempt in train["attempts"]] == ["killed", "succeeded"]
    assert train["metrics"] == {"steps": 15, "began_at": 2}
    (flow_run,) = server.ask("flow_runs/filter", flow_runs={"state": {"type": {"any_": ["COMPLETED"]}}})
    assert train["flow_run"] == f"nightly/{flow_run['name']}/{flow_run['id']}"
    assert train["code"]["dirty"] is False

    tasks = server.ask("task_runs/filter", flow_runs={"id": {"any_": [flow_run["id"]]}})
    counts = {task["name"].rsplit("-", 1)[0]: task["run_count"] for task in tasks}
    assert counts == {"stage:prepare": 1, "stage:train": 2, "stage:evaluate": 1, "stage:report": 1}
    logs = server.ask("logs/filter", logs={"flow_run_id": {"any_": [flow_run["id"]]}}, limit=200)
    messages = [log["message"] for log in logs]
    assert "[train] from step 0" in messages and "[train] from step 2" in messages
    artifacts = {a["key"]: a["data"] for a in server.ask("artifacts/latest/filter", artifacts={})}
    assert "| toy | 0.500 [0.440, 0.560] | 0.875 [0.815, 0.935] | 8 x 4 |" in artifacts["evaluation"]
    assert "Promotion gate: passed." in artifacts["evaluation"]
    assert artifacts["promotion"].startswith("**Promoted**: policy ")
    assert "| toy | 0.875 [0.815, 0.935] |" in artifacts["promotion"]
    kept = json.loads((workspace / "promoted" / "promotion.json").read_text())
    assert kept["flow_run"] == train["flow_run"] and kept["code"]["dirty"] is False
    assert kept["policy_sha256"] == sha256_path(workspace / "promoted" / "models" / "policy")
    assert "| began_at | 2 |" in artifacts["stage-train"]
    assert str(workspace / "reports" / "index.html") in artifacts["report"]


def test_a_policy_that_does_not_pass_the_gate_is_not_promoted_and_the_run_completes_saying_so(
    server: Server,
) -> None:
    workspace = server.checkout / "runs" / "tiny"
    before = (workspace / "promoted" / "promotion.json").read_text()
    profile = server.checkout / "profiles" / "tiny.yaml"
    profile.write_text(
        profile.read_text()
        .replace("lam_actor: 0.95", "lam_actor: 0.9")
        .replace("  pass_at: [1, 4]", "  pass_at: [1, 4]\n  promotion: {min_average: 0.9}")
    )
    commit(server.checkout, "Another policy, a higher gate")
    done = server.flow("nightly")
    assert done.returncode == 0, done.stderr
    reason = "toy: average 0.8750 is below the minimum 0.9"
    assert "'outcome': 'not promoted'" in done.stdout and reason in done.stdout
    assert f"was not promoted: {reason}; policy" in done.stderr
    artifacts = {a["key"]: a["data"] for a in server.ask("artifacts/latest/filter", artifacts={})}
    assert f"Promotion gate: not passed: {reason}." in artifacts["evaluation"]
    assert artifacts["promotion"].startswith("**Not promoted**: policy ") and reason in artifacts["promotion"]
    assert (workspace / "promoted" / "promotion.json").read_text() == before
    train = json.loads((workspace / "records" / "train.json").read_text())
    assert train["code"]["dirty"] is False, "what is kept of a promoted policy is no change of the code"


def test_a_configuration_error_fails_the_flow_at_once_and_is_not_tried_again(server: Server) -> None:
    (server.trouble / "configuration").touch()
    workspace = server.checkout / "runs" / "tiny"
    profile = server.checkout / "profiles" / "tiny.yaml"
    profile.write_text(profile.read_text().replace("num_steps: 15", "num_steps: 4"))
    commit(server.checkout, "4 steps")
    try:
        failed = server.flow("train")
    finally:
        (server.trouble / "configuration").unlink()
    assert failed.returncode != 0
    assert "ConfigurationError: train.num_steps: got a toy value" in failed.stderr
    (work,) = [p for p in (workspace / "work" / "train").iterdir() if p.is_dir()]
    assert sorted(p.name for p in (work / "attempts").iterdir()) == ["1.json", "1.log"]

    again = server.flow("train")
    assert again.returncode == 0, again.stderr
    assert "'train': {'began_at': 0, 'steps': 4}" in again.stdout and "'evaluate'" not in again.stdout


def test_up_again_changes_nothing_another_port_and_a_taken_one_are_refused(server: Server) -> None:
    before = server.services()
    again = python(server.checkout, "-m", "flows", "up", "--port", str(server.port))
    assert again.returncode == 0 and "starting" not in again.stdout
    assert server.services() == before
    other = python(server.checkout, "-m", "flows", "up", "--port", str(server.port + 1))
    assert (
        other.returncode == 2
        and f"server runs on {server.port}; `python -m flows down` first" in other.stderr
    )


def test_down_ends_every_process_and_closes_the_runs_that_nobody_runs_any_more(server: Server) -> None:
    (deployment,) = [d for d in server.ask("deployments/filter", deployments={}) if d["name"] == "evaluate"]
    run = server.ask(f"deployments/{deployment['id']}/create_flow_run", state={"type": "PENDING"})
    server.ask(f"flow_runs/{run['id']}/set_state", state={"type": "RUNNING"}, force=True)
    down = python(server.checkout, "-m", "flows", "down")
    assert down.returncode == 0 and "ended worker" in down.stdout and "ended server" in down.stdout
    assert f"run {run['name']} had no worker any more: marked as crashed" in down.stdout
    assert working_in(server.checkout) == [] and server.services() == []
    with contextlib.closing(sqlite3.connect(server.checkout / ".prefect" / "prefect.db")) as database:
        states = database.execute("SELECT state_type FROM flow_run WHERE name = ?", [run["name"]]).fetchall()
    assert states == [("CRASHED",)]


def test_prefect_commands_typed_in_the_checkout_reach_the_server_that_up_starts(root: Path) -> None:
    program = (
        "from prefect.settings import get_current_settings\n"
        "settings = get_current_settings(); print(settings.api.url, settings.server.analytics_enabled)\n"
    )
    assert python(root, "-c", program).stdout.split() == [f"http://127.0.0.1:{DEFAULT_PORT}/api", "False"]


def test_a_taken_port_is_named_and_nothing_starts(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = python(checkout, "-m", "flows", "up", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2 and "cannot be used" in done.stderr and "--port N" in done.stderr
    assert not (checkout / ".prefect" / "services.json").exists()


def test_down_leaves_a_process_alone_that_has_only_the_same_id(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    other = {"name": "server", "process_id": os.getpid(), "started": 1.0, "port": 4200}
    (checkout / ".prefect").mkdir()
    (checkout / ".prefect" / "services.json").write_text(json.dumps([other]))
    done = python(checkout, "-m", "flows", "down")
    assert done.returncode == 0 and "server did not run" in done.stdout
