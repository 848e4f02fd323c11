"""What all tests share: their order, data files, a clean environment."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fast tests first. Spread over processes (whole files, in this order), those that may take longest,
    so that none of them is left for the end.

    Both sorts are stable: otherwise the order of the files stays.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=_longest_allowed, reverse=True)
    else:
        items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


def _longest_allowed(item: pytest.Item) -> float:
    """Seconds that a slow test may take, 0 of any other."""
    if item.get_closest_marker("slow") is None:
        return 0.0
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout"))


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
