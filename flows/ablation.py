"""Flow `ablation`: a study, training runs side by side, on committed code."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.pipeline import Profile, Retries, run_stages
from vcppo.pipeline import upstream


@flow(name="ablation")
def ablation(profile: Profile = "ablation", retries: Retries = 2) -> dict[str, Any]:
    """The stages of ablation/dvc.yaml and what they need; runs that finished before are taken as they are."""
    return run_stages(profile, retries, lambda stages: upstream(stages, "ablation_report"))
