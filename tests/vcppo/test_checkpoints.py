"""A checkpoint counts once its manifest stands and every file is as it says; torn ones never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcppo.checkpoints import by_step, commit, has_manifest, newest_complete, verify
from vcppo.errors import CheckpointError

PREFIX = "step-"


def make(root: Path, step: int, *, whole: bool = True) -> Path:
    directory = root / f"{PREFIX}{step}"
    (directory / "actor").mkdir(parents=True)
    (directory / "actor" / "weights").write_bytes(bytes([step]) * 100)
    (directory / "data.pt").write_bytes(b"state")
    if whole:
        commit(directory, {"step": step, "world_size": 1})
    return directory


def damage(directory: Path, how: str) -> Path:
    """The damaged file."""
    weights = directory / "actor" / "weights"
    if how == "truncate":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif how == "flip":
        weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
    elif how == "delete":
        weights.unlink()
    else:
        weights = directory / "manifest.json"
        weights.write_text("{")
    return weights


def test_the_manifest_names_every_file_with_size_and_hash_beside_the_facts(tmp_path: Path) -> None:
    manifest = verify(make(tmp_path, 3))
    assert manifest["step"] == 3 and manifest["world_size"] == 1
    assert set(manifest["files"]) == {"actor/weights", "data.pt"}
    assert manifest["files"]["actor/weights"]["bytes"] == 100


def test_a_second_commit_does_not_count_the_manifest_itself(tmp_path: Path) -> None:
    directory = make(tmp_path, 1)
    commit(directory)
    assert set(verify(directory)) == {"files"} and len(verify(directory)["files"]) == 2


@pytest.mark.parametrize("how", ["truncate", "flip", "delete", "manifest"])
def test_verify_names_the_damaged_file_and_the_checkpoint_is_passed_over(tmp_path: Path, how: str) -> None:
    good, bad = make(tmp_path, 1), make(tmp_path, 2)
    damaged = damage(bad, how)
    with pytest.raises(CheckpointError, match=f"{PREFIX}2.*{damaged.name}"):
        verify(bad)
    assert newest_complete(tmp_path, PREFIX) == (1, good)


def test_the_newest_whole_one_is_taken_by_step_not_by_name(tmp_path: Path) -> None:
    make(tmp_path, 9)
    newest = make(tmp_path, 10)
    torn = make(tmp_path, 11, whole=False)
    assert newest_complete(tmp_path, PREFIX) == (10, newest)
    assert has_manifest(newest) and not has_manifest(torn)


def test_only_directories_named_by_a_step_are_checkpoints(tmp_path: Path) -> None:
    make(tmp_path, 2)
    (tmp_path / f"{PREFIX}x").mkdir()
    (tmp_path / f"other-{PREFIX}3").mkdir()
    assert list(by_step(tmp_path, PREFIX)) == [2]


def test_nothing_there_is_no_checkpoint(tmp_path: Path) -> None:
    assert newest_complete(tmp_path, PREFIX) is None
    assert newest_complete(tmp_path / "missing", PREFIX) is None


def test_an_empty_save_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nothing was saved"):
        commit(tmp_path)
