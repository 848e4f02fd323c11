"""Flow `nightly`: every stage of the pipeline in order, on committed code; then the promotion gate acts."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.pipeline import Profile, Retries, main_stages, run_stages


@flow(name="nightly")
def nightly(profile: Profile = "tiny", retries: Retries = 2) -> dict[str, Any]:
    """Prepare, validate, train, evaluate and report; what is up to date is skipped.

    The policy that passes the promotion gate is then kept in `promoted/` of the workspace. One that does not
    is no failure: the run completes and says why.
    """
    return run_stages(profile, retries, main_stages, promotes=True)
