"""What a flow run leaves in the UI: a table of metrics for each stage, the evaluation, links to the
reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact

from flows.promotion import Promotion
from vcppo.records import RECORDS, read_record

EVALUATION = Path("metrics/evaluate.json")
PAGES = {"report": Path("reports/index.html"), "study-report": Path("ablation/report/index.html")}
"""Pages that are linked, by the key of their artifact."""


def publish_stage(workspace: Path, stage: str) -> dict[str, Any]:
    """An artifact `stage-NAME` with the metrics of a stage's record. Returns the metrics."""
    record = read_record(workspace / RECORDS / f"{stage}.json")
    commit = f"{(record.code.get('commit') or 'unknown')[:12]}{', dirty' if record.code.get('dirty') else ''}"
    lines = [
        f"## {stage}",
        f"{record.seconds:.1f} s, {len(record.attempts)} attempt(s), finished {record.finished}, "
        f"code {commit}",
        "",
        "| metric | value |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in flatten(record.metrics)),
    ]
    create_markdown_artifact(
        "\n".join(lines), key=_key(f"stage-{stage}"), description=f"Metrics of stage {stage}"
    )
    return record.metrics


def publish_evaluation(workspace: Path) -> None:
    """Artifact `evaluation` (accuracy before and after, verdict of the promotion gate), and a link to each
    page of `PAGES`, where the workspace has them."""
    if (workspace / EVALUATION).is_file():
        table = evaluation_markdown(json.loads((workspace / EVALUATION).read_text(encoding="utf-8")))
        create_markdown_artifact(
            table, key="evaluation", description="Held-out accuracy before and after training"
        )
    for key, name in PAGES.items():
        page = (workspace / name).resolve()
        if page.is_file():
            create_link_artifact(page.as_uri(), link_text=str(page), key=key, description=f"The page {name}")


def publish_promotion(promotion: Promotion) -> None:
    """Artifact `promotion`: what became of the policy, and the figures of the one that stands."""
    create_markdown_artifact(
        promotion_markdown(promotion), key="promotion", description="Verdict of the promotion gate"
    )


def promotion_markdown(promotion: Promotion) -> str:
    """The outcome with its reasons, then the promoted policy's accuracy, one row per benchmark."""
    lines = [f"**{promotion.outcome.capitalize()}**: {promotion.as_sentence()}."]
    if promotion.last is not None:
        lines += [
            "",
            f"Promoted {promotion.last['promoted']}: policy {promotion.last['policy_sha256']}",
            "",
            "| benchmark | promoted policy |",
            "| --- | --- |",
            *(f"| {name} | {with_interval(row)} |" for name, row in promotion.last["after"].items()),
        ]
    return "\n".join(lines)


def evaluation_markdown(evaluation: Mapping[str, Any]) -> str:
    """metrics/evaluate.json as a markdown table, one row per benchmark, and the promotion gate's verdict."""
    lines = [
        "| benchmark | before | after | problems x samples |",
        "| --- | --- | --- | --- |",
    ]
    for benchmark, after in evaluation["after"].items():
        before = evaluation["before"][benchmark]
        size = f"{after['num_problems']} x {after['samples_per_problem']}"
        lines.append(f"| {benchmark} | {with_interval(before)} | {with_interval(after)} | {size} |")
    if verdict := evaluation.get("promotion"):
        said = "passed" if verdict["passed"] else f"not passed: {'; '.join(verdict['reasons'])}"
        lines += ["", f"Promotion gate: {said}."]
    return "\n".join(lines)


def with_interval(row: Mapping[str, Any]) -> str:
    """avg@k with its 95 % interval: `0.532 [0.470, 0.594]`."""
    low, high = row["interval_95"]
    return f"{row['average_at_k']:.3f} [{low:.3f}, {high:.3f}]"


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, value) of every leaf, numbers to four significant digits."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", f"{value:.4g}" if isinstance(value, float) else str(value)


def _key(name: str) -> str:
    # Prefect allows lower-case letters, digits and dashes
    return name.lower().replace("_", "-")
