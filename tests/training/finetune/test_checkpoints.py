"""A checkpoint counts only when it is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.finetune.checkpoints import commit, newest_complete, sweep_torn, verify
from vcppo.errors import CheckpointError


def write(root: Path, step: int, *, whole: bool = True) -> Path:
    directory = root / f"checkpoint-{step}"
    directory.mkdir(parents=True)
    (directory / "model.safetensors").write_bytes(bytes([step]) * 100)
    (directory / "trainer_state.json").write_text("{}")
    if whole:
        commit(directory)
    return directory


def test_the_newest_whole_one_is_taken_by_step_not_by_name(tmp_path: Path) -> None:
    write(tmp_path, 9)
    newest = write(tmp_path, 10)
    write(tmp_path, 11, whole=False)
    assert newest_complete(tmp_path) == newest


def test_nothing_there_is_no_checkpoint(tmp_path: Path) -> None:
    assert newest_complete(tmp_path / "missing") is None
    (tmp_path / "checkpoint-x").mkdir()
    assert newest_complete(tmp_path) is None


@pytest.mark.parametrize("damage", ["truncated", "changed", "removed", "manifest"])
def test_a_damaged_one_is_passed_over_and_swept(tmp_path: Path, damage: str) -> None:
    good, bad = write(tmp_path, 1), write(tmp_path, 2)
    weights = bad / "model.safetensors"
    if damage == "truncated":
        weights.write_bytes(b"\2" * 99)
    elif damage == "changed":
        weights.write_bytes(b"\3" * 100)
    elif damage == "removed":
        weights.unlink()
    else:
        (bad / "manifest.json").write_text("{")
    with pytest.raises(CheckpointError, match="checkpoint-2"):
        verify(bad)
    assert newest_complete(tmp_path) == good
    sweep_torn(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-1"]
