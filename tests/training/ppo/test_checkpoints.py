"""A checkpoint counts once its manifest stands; torn ones never do; something whole is always there."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.ppo import checkpoints
from vcppo.errors import CheckpointError


def make(root: Path, step: int, *, whole: bool = True, fingerprint: str = "f") -> Path:
    directory = root / f"global_step_{step}"
    (directory / "actor").mkdir(parents=True)
    (directory / "actor" / "weights").write_bytes(bytes([step]) * 100)
    (directory / "data.pt").write_bytes(b"state")
    if whole:
        checkpoints.commit(directory, step, {"fingerprint": fingerprint, "world_size": 1})
    return directory


def test_manifest_names_every_file_with_size_and_hash(tmp_path: Path) -> None:
    manifest = checkpoints.verify(make(tmp_path, 3))
    assert manifest["step"] == 3 and manifest["world_size"] == 1
    assert set(manifest["files"]) == {"actor/weights", "data.pt"}
    assert manifest["files"]["actor/weights"]["bytes"] == 100


def test_newest_complete_passes_over_torn_ones(tmp_path: Path) -> None:
    make(tmp_path, 5)
    make(tmp_path, 10)
    make(tmp_path, 15, whole=False)
    (tmp_path / "global_step_10" / "actor" / "weights").write_bytes(b"torn")
    assert checkpoints.newest_complete(tmp_path) == (5, tmp_path / "global_step_5")
    assert checkpoints.newest_complete(tmp_path / "nowhere") is None


@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "manifest"])
def test_verify_names_the_damaged_file(tmp_path: Path, damage: str) -> None:
    directory = make(tmp_path, 1)
    weights = directory / "actor" / "weights"
    if damage == "truncate":
        weights.write_bytes(b"\x01" * 99)
    elif damage == "flip":
        weights.write_bytes(b"\x01" * 99 + b"\x02")
    elif damage == "delete":
        weights.unlink()
    else:
        weights = directory / "manifest.json"
        weights.write_text("{")
    with pytest.raises(CheckpointError, match=weights.name):
        checkpoints.verify(directory)


def test_an_empty_save_is_refused(tmp_path: Path) -> None:
    (tmp_path / "global_step_1").mkdir()
    with pytest.raises(CheckpointError, match="nothing was saved"):
        checkpoints.commit(tmp_path / "global_step_1", 1, {})


def test_sweep_keeps_the_newest_complete_and_the_pinned(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        make(tmp_path, step)
    make(tmp_path, 5, whole=False)
    assert checkpoints.sweep(tmp_path, keep=2, pinned=frozenset({1})) == [2, 5]
    assert sorted(checkpoints.step_directories(tmp_path)) == [1, 3, 4]


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path: Path) -> None:
    directory = make(tmp_path, 1, fingerprint="other")
    with pytest.raises(CheckpointError, match="other.*mine.*start anew"):
        checkpoints.check_fingerprint(directory, "mine")
    checkpoints.check_fingerprint(directory, "other")


def test_the_last_good_checkpoint_is_the_newest_before_the_trouble(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        make(tmp_path, step)
    make(tmp_path, 5, whole=False)
    assert checkpoints.last_before(tmp_path, 6) == 4
    assert checkpoints.last_before(tmp_path, 2) is None


def test_checkpoints_since_the_trouble_are_kept_but_never_resumed(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        make(tmp_path, step)
    assert checkpoints.set_aside(tmp_path, 4) == [4, 6]
    assert checkpoints.newest_complete(tmp_path) == (2, tmp_path / "global_step_2")
    assert (tmp_path / "diverged_step_6" / "actor" / "weights").is_file()
    make(tmp_path, 6)  # the same trouble again, after a resume
    assert checkpoints.set_aside(tmp_path, 5) == [6]
    assert checkpoints.verify(tmp_path / "diverged_step_6")["step"] == 6
