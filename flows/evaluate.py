"""Flow `evaluate`: the trained policy on the benchmarks, and the report."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.pipeline import Profile, Retries, run_stages


@flow(name="evaluate")
def evaluate(profile: Profile = "tiny", retries: Retries = 2) -> dict[str, Any]:
    """Stages `evaluate` and `report`. Fails with the missing input's name if nothing was trained yet."""
    return run_stages(profile, retries, lambda stages: ["evaluate", "report"])
