"""Which stages ran, on which code and versions, and what they made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.reporting.numbers import byte_size, duration, figure
from vcppo.records import RunRecord

Records = Mapping[str, RunRecord]


def stage_rows(records: Records) -> list[dict[str, Any]]:
    """One row a stage, in the order of the records."""
    return [
        {
            "stage": record.stage,
            "started": record.started,
            "duration": duration(record.seconds),
            "attempts": ", ".join(str(attempt.get("outcome", "unknown")) for attempt in record.attempts),
            "fingerprint": record.fingerprint,
            "code": code(record, commit_length=10),
        }
        for record in records.values()
    ]


def total_duration(records: Records) -> str:
    """Seconds of all stages together."""
    return duration(sum(record.seconds for record in records.values()))


def code(record: RunRecord, commit_length: int | None = None) -> str:
    """Commit of the code that made a record, and whether files differed from it."""
    commit = record.code.get("commit")
    if not commit:
        return "no git checkout"
    state = "with uncommitted changes" if record.code.get("dirty") else "clean"
    return f"{str(commit)[:commit_length]}, {state}"


def code_states(records: Records) -> list[tuple[str, str]]:
    """Each state of the code that took part, and the stages that ran on it."""
    return _by_value((code(record), record.stage) for record in records.values())


def outputs(records: Records) -> list[dict[str, str]]:
    """Everything that the stages made, with its hash."""
    return [
        {
            "stage": record.stage,
            "path": artifact.path,
            "sha256": artifact.sha256,
            "size": byte_size(artifact.bytes),
        }
        for record in records.values()
        for artifact in record.outputs
    ]


def versions(records: Records) -> list[dict[str, Any]]:
    """Each package with its version; where stages differ, each version with its stages."""
    names: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for record in records.values():
        environment = record.environment
        names["Python"].append((figure(environment.get("python")), record.stage))
        for package, version in environment.get("packages", {}).items():
            names[package].append((version or "not installed", record.stage))
    return [{"package": name, "versions": _labelled(found)} for name, found in names.items()]


def flat(metrics: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested metrics as (dotted name, figure); a list is its figures."""
    rows = []
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            shown = [figure(item) for item in value if not isinstance(item, Mapping | list)]
            rows.append(
                (f"{prefix}{name}", ", ".join(shown) if len(shown) == len(value) else f"{len(value)} entries")
            )
        else:
            rows.append((f"{prefix}{name}", figure(value)))
    return rows


def _labelled(found: list[tuple[str, str]]) -> str:
    grouped = _by_value(found)
    return (
        grouped[0][0] if len(grouped) == 1 else "; ".join(f"{value} ({stages})" for value, stages in grouped)
    )


def _by_value(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    stages: dict[str, list[str]] = {}
    for value, stage in found:
        stages.setdefault(value, []).append(stage)
    return [(value, ", ".join(names)) for value, names in stages.items()]
