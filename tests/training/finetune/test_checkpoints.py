"""transformers finds whole checkpoints only."""

from __future__ import annotations

from pathlib import Path

from training.finetune.checkpoints import PREFIX, sweep_torn
from vcppo.checkpoints import commit


def write(root: Path, step: int) -> Path:
    directory = root / f"{PREFIX}{step}"
    directory.mkdir()
    (directory / "model.safetensors").write_bytes(bytes([step]) * 100)
    return directory


def test_torn_and_damaged_ones_are_swept_and_nothing_else_is(tmp_path: Path) -> None:
    commit(write(tmp_path, 1))
    commit(write(tmp_path, 2))
    (tmp_path / f"{PREFIX}2" / "model.safetensors").write_bytes(b"changed")
    write(tmp_path, 3)
    (tmp_path / "other").mkdir()
    sweep_torn(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-1", "other"]
