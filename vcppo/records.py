"""Run records: one JSON per stage run that says what was made from what, by which code, where (DESIGN:
records)."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from vcppo.errors import DataError

RECORDS = Path("records")
PACKAGES = (
    "torch", "transformers", "verl", "ray", "TransferQueue", "dvc", "prefect", "great_expectations", "wandb",
    "s3fs", "numpy", "pyarrow", "safetensors",
)  # fmt: skip


class Artifact(BaseModel):
    """A file or directory that went into a stage or came out of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    sha256: str
    bytes: int
    kind: str = "data"
    """data, code, or source (something from outside the pipeline)."""
    detail: dict[str, Any] = {}
    """Of a source: its seed, revision or file, as configured."""


class RunRecord(BaseModel):
    """What one run of a stage was. `schema_version` grows when a field changes its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = 1
    stage: str
    fingerprint: str
    started: str
    finished: str
    seconds: float
    inputs: tuple[Artifact, ...]
    outputs: tuple[Artifact, ...]
    parameters: dict[str, Any]
    configuration: dict[str, Any]
    runtime: dict[str, Any]
    code: dict[str, Any]
    environment: dict[str, Any]
    attempts: tuple[dict[str, Any], ...]
    metrics: dict[str, Any]
    flow_run: str | None = None
    """Prefect flow run, when one started this stage."""
    ray_job: str | None = None
    wandb_run: str | None = None


def read_record(path: Path) -> RunRecord:
    """Read one record. Raises DataError if it is missing or malformed."""
    try:
        return RunRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is no readable run record: {error}") from None


def read_records(directory: Path = RECORDS) -> dict[str, RunRecord]:
    """All records of a workspace by stage name."""
    records = [read_record(path) for path in sorted(directory.glob("*.json"))]
    return {record.stage: record for record in records}


def now() -> str:
    """This moment in UTC, ISO 8601 with seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def code_state(made: Iterable[str] = ()) -> dict[str, Any]:
    """Commit of the checkout and whether tracked or new files differ from it.

    made: paths that the pipeline makes. They do not count, nor does what DVC writes for itself, nor
    params.yaml (its values are in the record).
    """
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    apart = [f":(exclude){path}" for path in ("dvc.lock", "params.yaml", *made)]
    status = _git(
        "status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude,glob)**/.gitignore", *apart
    )
    return {"commit": commit, "dirty": bool(status)}


def environment() -> dict[str, Any]:
    """Python, platform and the versions of the packages that matter."""
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "processor_count": os.cpu_count(),
        "packages": versions,
    }


def flow_run() -> str | None:
    """Identity of the Prefect flow run that started this process, handed on in the environment."""
    return os.environ.get("VCPPO_FLOW_RUN") or None


def render(record: RunRecord) -> str:
    """The record as the JSON text that is stored."""
    return json.dumps(record.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
