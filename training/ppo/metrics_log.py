"""metrics.jsonl: one line a step, written before the step's checkpoint. The local truth; W&B is a copy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcppo.files import write_text_atomic


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All whole lines; a line torn by a kill is left out."""
    if not path.is_file():
        return []
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return lines


def truncate_metrics(path: Path, last_step: int) -> None:
    """Forget the steps after `last_step`: a resumed run makes them anew, and each step stands once."""
    kept = [line for line in read_metrics(path) if line["step"] <= last_step]
    if path.is_file():
        write_text_atomic(path, "".join(json.dumps(line, sort_keys=True) + "\n" for line in kept))


def append_metrics(path: Path, step: int, metrics: Mapping[str, Any]) -> None:
    """Append one step, flushed to disk. Non-finite numbers are written as null: JSON has none."""
    line = {"step": step} | {key: _plain(value) for key, value in sorted(metrics.items())}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line, sort_keys=True, allow_nan=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not (float("-inf") < value < float("inf")):
        return None
    return value
