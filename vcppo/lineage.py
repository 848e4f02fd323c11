"""What made an artifact, and what was made from it, read from a workspace's run records.

An input belongs to a record's output only if path AND hash agree: a record says what a stage read at the
time, and the file at that path may have been made again since. A disagreement is part of the answer, never
passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from vcppo.errors import DataError
from vcppo.files import sha256_json, sha256_path
from vcppo.records import RECORDS, Artifact, RunRecord, read_records

FileState = Literal["unchanged", "changed", "missing", "not checked"]
Match = Literal["same", "another version", "no record"]


class Link(BaseModel):
    """One input of a run, matched with the record of the stage that makes this path."""

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str
    kind: str
    """data, code or source."""
    detail: dict[str, Any]
    made_by: str | None
    """Stage whose record names the path as its output; None: from outside the pipeline."""
    match: Match
    """same: that record's output has this hash; another version: it has `recorded_sha256`."""
    recorded_sha256: str | None


class Run(BaseModel):
    """One stage run on the way."""

    model_config = ConfigDict(frozen=True)

    stage: str
    fingerprint: str
    commit: str | None
    dirty: bool | None
    configuration_sha256: str
    parameters: dict[str, Any]
    started: str
    finished: str
    seconds: float
    attempts: tuple[dict[str, Any], ...]
    flow_run: str | None
    inputs: tuple[Link, ...]
    outputs: tuple[Artifact, ...]


class Lineage(BaseModel):
    """The answer for one path: itself, and the runs above (or below) it, nearest first."""

    model_config = ConfigDict(frozen=True)

    path: str
    workspace: str
    direction: Literal["up", "down"]
    artifact: Artifact
    made_by: str | None
    state: FileState
    """Whether what lies at the path now still has the recorded hash."""
    sha256_now: str | None
    runs: tuple[Run, ...]

    @property
    def mismatches(self) -> list[str]:
        """Everything that does not fit, one sentence each; empty when the records and the file agree."""
        found = []
        if self.state in ("changed", "missing"):
            found.append(
                f"{self.artifact.path}: {self.state} since it was recorded "
                f"(recorded {self.artifact.sha256[:12]}, now {(self.sha256_now or 'nothing')[:12]})"
            )
        for run in self.runs:
            for link in run.inputs:
                if link.match == "another version":
                    found.append(
                        f"{run.stage}: made from another version of {link.path} (read {link.sha256[:12]}, "
                        f"the record of {link.made_by} has {(link.recorded_sha256 or '')[:12]})"
                    )
        return found


def trace(path: Path, *, down: bool = False, workspace: Path | None = None) -> Lineage:
    """Lineage of a file or directory from the records of its workspace.

    path: an artifact, or something inside one. workspace: default is the nearest folder above with records/
    or a dvc.yaml. Raises DataError if there are no records, or none that knows the path (the known ones are
    listed).
    """
    absolute = Path(os.path.normpath(path.absolute()))  # links are not followed: records know names
    workspace = workspace.absolute() if workspace else _workspace_of(absolute)
    directory = workspace / RECORDS
    records = read_records(directory) if directory.is_dir() else {}
    if not records:
        raise DataError(
            f"{directory}: there are no run records; every stage writes one: run `make demo`, or `dvc repro`"
        )
    inside = absolute.is_relative_to(workspace)
    name = absolute.relative_to(workspace).as_posix() if inside else str(path)
    made_by, artifact = _find(name, str(path), records)
    if name != artifact.path and (workspace / artifact.path).exists() and not absolute.exists() and made_by:
        raise DataError(f"{path}: {artifact.path} holds no such file")
    state, now = _state(workspace, artifact, made_by)
    runs = _below(artifact, records) if down else _above(made_by, records)
    return Lineage(
        path=name,
        workspace=str(workspace),
        direction="down" if down else "up",
        artifact=artifact,
        made_by=made_by,
        state=state,
        sha256_now=now,
        runs=tuple(_run(record, records) for record in runs),
    )


def render_text(lineage: Lineage) -> str:
    """The lineage as lines for a person."""
    artifact = lineage.artifact
    origin = f"made by stage {lineage.made_by}" if lineage.made_by else "from outside the pipeline"
    lines = [f"{artifact.path}  sha256 {artifact.sha256}", f"  {lineage.state}; {origin}"]
    if not lineage.runs:
        lines.append(
            "  nothing was made from it" if lineage.direction == "down" else "  nothing stands above it"
        )
    for run in lineage.runs:
        commit = f"{run.commit}{' with uncommitted changes' if run.dirty else ''}" if run.commit else "no git"
        attempts = ", ".join(str(attempt.get("outcome")) for attempt in run.attempts)
        lines += [
            "",
            f"stage {run.stage}  {run.started} to {run.finished} ({run.seconds:.1f} s), attempts: {attempts}",
            f"  code           {commit}",
            f"  configuration  {run.configuration_sha256[:16]}, fingerprint {run.fingerprint}",
            *([f"  flow run       {run.flow_run}"] if run.flow_run else []),
            *(f"  parameter      {key} = {_short(value)}" for key, value in run.parameters.items()),
            *(f"  made           {out.path}  {out.sha256[:16]}" for out in run.outputs),
            *(f"  from           {_describe(link)}" for link in run.inputs),
        ]
    if lineage.mismatches:
        lines += ["", *(f"! {sentence}" for sentence in lineage.mismatches)]
    return "\n".join(lines)


def _describe(link: Link) -> str:
    origin = {
        "same": f"made by {link.made_by}",
        "another version": f"ANOTHER VERSION than {link.made_by} made last",
        "no record": link.kind,
    }[link.match]
    return f"{link.path}  {link.sha256[:16]}  ({origin})"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 90 else text[:87] + "..."


def _workspace_of(path: Path) -> Path:
    for folder in (path, *path.parents):
        if (folder / RECORDS).is_dir() or (folder / "dvc.yaml").is_file():
            return folder
    return Path.cwd()


def _find(name: str, typed: str, records: Mapping[str, RunRecord]) -> tuple[str | None, Artifact]:
    """The recorded artifact at the path or around it, and the stage that made it (None: only read)."""
    for stage, record in records.items():
        for artifact in record.outputs:
            if name == artifact.path or name.startswith(artifact.path + "/"):
                return stage, artifact
        if name == f"{RECORDS}/{stage}.json":  # a record speaks for its stage: take the first thing it made
            return stage, record.outputs[0]
    for wanted in (name, typed):
        for record in records.values():
            for artifact in record.inputs:
                if wanted == artifact.path:
                    return None, artifact
    known = sorted(
        {artifact.path for record in records.values() for artifact in (*record.outputs, *record.inputs)}
    )
    raise DataError(f"{typed}: no record knows this path; known are {', '.join(known)}")


def _state(workspace: Path, artifact: Artifact, made_by: str | None) -> tuple[FileState, str | None]:
    path = workspace / artifact.path
    if not path.exists():
        # a source's name need not be a file here (a generator, a dataset on a hub)
        return ("missing", None) if made_by else ("not checked", None)
    now = sha256_path(path)
    return ("unchanged" if now == artifact.sha256 else "changed"), now


def _maker(path: str, records: Mapping[str, RunRecord]) -> tuple[str, Artifact] | None:
    for stage, record in records.items():
        for artifact in record.outputs:
            if artifact.path == path:
                return stage, artifact
    return None


def _above(stage: str | None, records: Mapping[str, RunRecord]) -> Iterator[RunRecord]:
    """The record of a stage, then those of its inputs' makers, breadth first, each once."""
    queue = [stage] if stage else []
    for name in queue:
        yield records[name]
        makers = (_maker(artifact.path, records) for artifact in records[name].inputs)
        queue += dict.fromkeys(maker[0] for maker in makers if maker and maker[0] not in queue)


def _below(artifact: Artifact, records: Mapping[str, RunRecord]) -> Iterator[RunRecord]:
    """The records that read an artifact's path, then those that read what they made, each once."""
    seen: list[str] = []
    queue = [artifact.path]
    for path in queue:
        for stage, record in records.items():
            if stage not in seen and any(read.path == path for read in record.inputs):
                seen.append(stage)
                queue += [out.path for out in record.outputs]
                yield record


def _run(record: RunRecord, records: Mapping[str, RunRecord]) -> Run:
    return Run(
        stage=record.stage,
        fingerprint=record.fingerprint,
        commit=record.code.get("commit"),
        dirty=record.code.get("dirty"),
        configuration_sha256=sha256_json(record.configuration),
        parameters=record.parameters,
        started=record.started,
        finished=record.finished,
        seconds=record.seconds,
        attempts=record.attempts,
        flow_run=record.flow_run,
        inputs=tuple(_link(artifact, records) for artifact in record.inputs),
        outputs=record.outputs,
    )


def _link(artifact: Artifact, records: Mapping[str, RunRecord]) -> Link:
    maker = _maker(artifact.path, records)
    match: Match = "no record"
    if maker:
        match = "same" if maker[1].sha256 == artifact.sha256 else "another version"
    return Link(
        path=artifact.path,
        sha256=artifact.sha256,
        kind=artifact.kind,
        detail=artifact.detail,
        made_by=maker[0] if maker else None,
        match=match,
        recorded_sha256=maker[1].sha256 if maker else None,
    )
