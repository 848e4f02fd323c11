"""What the flows share: the profile's workspace, one Prefect task per stage, retries where they can help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from prefect import get_run_logger, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff
from pydantic import Field

from flows.artifacts import publish_evaluation, publish_promotion, publish_stage
from flows.promotion import promote
from vcppo.pipeline import MAIN, StageSpec, load_all
from vcppo.reproduce import reproduce
from vcppo.workspace import ROOT_VARIABLE, checkout_root, open_workspace

Retries = Annotated[
    int, Field(ge=0, le=20, description="Times that a stage is tried again when that can help")
]
Profile = Annotated[str, Field(description="Name of a committed file in profiles/")]
BACK_OFF_SECONDS = 10.0
"""Before the first retry; doubled before each further one."""


def run_stages(
    profile: str,
    retries: int,
    select: Callable[[Mapping[str, StageSpec]], Sequence[str]],
    *,
    promotes: bool = False,
) -> dict[str, Any]:
    """Run stages in the profile's workspace, inside a flow run.

    select: from all stages of all pipelines, the names of those to run, in order. promotes: the policy is
    then kept in `promoted/` if it passes the promotion gate (flows/promotion.py). Returns the metrics of each
    stage from its record, and under `promotion` what became of the policy. Raises the error of the stage that
    failed; LeaseHeldError while another run has the workspace.
    """
    logger = get_run_logger()
    root = checkout_root()
    with open_workspace(profile, root) as workspace:
        logger.info("Workspace %s of %s", workspace, root)
        stages = load_all(workspace)
        metrics = {}
        for name in select(stages):
            stage = run_stage.with_options(name=f"stage:{name}", retries=retries)
            metrics[name] = stage(str(workspace), str(root), name, stages[name].file)
        publish_evaluation(workspace)
        if promotes:
            promotion = promote(workspace, _flow_run())
            logger.info("Promotion: %s", promotion.as_sentence())
            publish_promotion(promotion)
            metrics["promotion"] = promotion.as_result()
    return metrics


def main_stages(stages: Mapping[str, StageSpec]) -> list[str]:
    """Names of the main pipeline's stages, in order."""
    return [name for name, stage in stages.items() if stage.file == MAIN]


def _can_help(task: Any, task_run: Any, state: Any) -> bool:
    """Whether to try a failed stage again: our errors say so, anything else is a mistake that stays one."""
    return bool(getattr(state.result(raise_on_failure=False), "retryable", False))


@task(
    cache_policy=NO_CACHE,
    persist_result=False,
    retry_delay_seconds=exponential_backoff(BACK_OFF_SECONDS),
    retry_condition_fn=_can_help,
)
def run_stage(workspace: str, root: str, stage: str, file: str) -> dict[str, Any]:
    """`dvc repro --single-item STAGE` in a process group of its own, its lines in this task run's log."""
    logger = get_run_logger()
    reproduce(
        Path(workspace),
        stage,
        file=file,
        on_line=logger.info,
        environment={
            ROOT_VARIABLE: root,
            "VCPPO_FLOW_RUN": _flow_run(),
        },
    )
    return publish_stage(Path(workspace), stage)


def _flow_run() -> str:
    return f"{runtime.flow_run.flow_name}/{runtime.flow_run.name}/{runtime.flow_run.id}"
