"""A temporary workspace of the pipeline: the rooms as they are, parameters and sources as the test wants
them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcppo.config import Config, load_params

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Workspace:
    """A folder with dvc.yaml, params.yaml and links to the rooms; stages run in it as they do in a
    checkout."""

    path: Path

    def configure(self, sources: Sequence[Mapping[str, Any]], **data: Any) -> Config:
        """Write params.yaml: the tiny profile with these sources and data values."""
        values = yaml.safe_load((ROOT / "profiles" / "tiny.yaml").read_text(encoding="utf-8"))
        values["data"] = {**values["data"], **data, "sources": [dict(source) for source in sources]}
        (self.path / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        return load_params(self.path / "params.yaml")

    def file_source(
        self, name: str, rows: Sequence[Mapping[str, Any]] | str, **values: Any
    ) -> dict[str, Any]:
        """Write `name`.jsonl (rows as JSON, or the text as it stands); the source that declares it."""
        text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
        path = self.path / f"{name}.jsonl"
        path.write_text(text, encoding="utf-8")
        return self.declare(path, name=name, **values)

    def declare(self, path: Path, **values: Any) -> dict[str, Any]:
        """A source of kind file with the hash that the file has."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return {"kind": "file", "name": path.stem, "path": str(path), "sha256": digest, **values}

    def run(self, stage: str) -> subprocess.CompletedProcess[str]:
        """`python -m tasks STAGE` as DVC would start it."""
        return subprocess.run(
            [sys.executable, "-m", "tasks", stage],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    def card(self) -> dict[str, Any]:
        return json.loads((self.path / "data/prepared/card.json").read_text(encoding="utf-8"))


def lay_workspace(path: Path) -> Workspace:
    for room in ("tasks", "training", "vcppo"):
        (path / room).symlink_to(ROOT / room)
    (path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return Workspace(path)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return lay_workspace(tmp_path)


@pytest.fixture(scope="module")
def lasting_workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """One for all tests of a module that only look at what a stage made."""
    return lay_workspace(tmp_path_factory.mktemp("workspace"))
