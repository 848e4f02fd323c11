"""Flow `train`: everything that the trained policy needs, and the policy."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.pipeline import Profile, Retries, run_stages
from vcppo.pipeline import upstream


@flow(name="train")
def train(profile: Profile = "tiny", retries: Retries = 2) -> dict[str, Any]:
    """The stages up to and including `train`."""
    return run_stages(profile, retries, lambda stages: upstream(stages, "train"))
