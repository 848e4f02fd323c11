"""Flow `evaluate`: the trained policy on the benchmarks, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import flow

from flows.pipeline import Profile, Retries, main_stages, run_stages
from vcppo.pipeline import StageSpec


@flow(name="evaluate")
def evaluate(profile: Profile = "tiny", retries: Retries = 2) -> dict[str, Any]:
    """Stages `evaluate` and `report`. Fails with the missing input's name if nothing was trained yet."""
    return run_stages(profile, retries, _from_evaluate_on)


def _from_evaluate_on(stages: Mapping[str, StageSpec]) -> list[str]:
    names = main_stages(stages)
    return names[names.index("evaluate") :]
