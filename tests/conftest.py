"""What all tests share: their order, data files, a clean environment."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


LONGEST = (
    "training/ppo/test_kill_and_resume.py",
    "flows/test_flows.py",
    "training/finetune/test_distributed.py",
    "training/ppo/test_short_runs.py",
    "training/generation/test_rollouts.py",
    "tasks/ablation/test_runs.py",
)
"""Files that take about a minute or more. Those that need `verl_alone` stand apart, so that two processes
seldom wait for each other."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first. Spread over processes (whole files, in this order), the longest files, then the other
    slow tests, so that none of them is left for the end.

    Both sorts are stable: otherwise the order of the files stays.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (_rank(item), not _is_slow(item)))
    else:
        items.sort(key=_is_slow)


def _rank(item: pytest.Item) -> int:
    """Place of its file in LONGEST."""
    file = item.path.relative_to(ROOT / "tests").as_posix()
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No VCPPO_ variable of the caller reaches a test, and no test calls home."""
    for name in [name for name in os.environ if name.startswith("VCPPO_") and name != "VCPPO_SHARED"]:
        monkeypatch.delenv(name)
    telemetry = {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DVC_NO_ANALYTICS": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "WANDB_ERROR_REPORTING": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    for name, value in telemetry.items():
        monkeypatch.setenv(name, value)
    yield


@pytest.fixture(scope="module")
def verl_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No other module of any test process trains with verl meanwhile: four Rays starting on two cores at once
    do not come up within the 30 s that Ray gives itself."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "verl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Benchmark files and graded cases that are not part of the checkout (VCPPO_SHARED overrides)."""
    return Path(os.environ.get("VCPPO_SHARED", ROOT.parent / "shared"))
