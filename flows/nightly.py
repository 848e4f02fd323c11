"""Flow `nightly`: every stage of the pipeline in order, on committed code."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.pipeline import Profile, Retries, main_stages, run_stages


@flow(name="nightly")
def nightly(profile: Profile = "tiny", retries: Retries = 2) -> dict[str, Any]:
    """Prepare, validate, train, evaluate and report; what is up to date is skipped."""
    return run_stages(profile, retries, main_stages)
