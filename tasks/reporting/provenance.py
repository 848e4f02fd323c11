"""Which stages ran, on which code and versions, and what they made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.reporting.numbers import byte_size, duration, figure, moment
from vcppo.records import RunRecord

Records = Mapping[str, RunRecord]


def stage_rows(records: Records) -> list[dict[str, Any]]:
    """One row a stage, in the order of the records."""
    return [
        {
            "stage": record.stage,
            "started": moment(record.started),
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


def code_states(records: Records) -> str:
    """The state of the code; where stages differ, each state with its stages. Empty without records."""
    return _labelled((code(record), record.stage) for record in records.values())


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
            plain = not any(isinstance(item, Mapping | list) for item in value)
            shown = ", ".join(map(figure, value)) if plain else f"{len(value)} entries"
            rows.append((f"{prefix}{name}", shown or "none"))
        else:
            rows.append((f"{prefix}{name}", figure(value)))
    return rows


def _labelled(found: Iterable[tuple[str, str]]) -> str:
    """(value, stage) pairs as text: the value, or each value with its stages if there are several."""
    stages: dict[str, list[str]] = {}
    for value, stage in found:
        stages.setdefault(value, []).append(stage)
    if len(stages) == 1:
        return next(iter(stages))
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in stages.items())
