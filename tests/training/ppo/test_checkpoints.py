"""Which checkpoints stay, which go, which are set aside; something whole is always there."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.ppo.checkpoints import PREFIX, check_fingerprint, last_before, set_aside, sweep
from vcppo.checkpoints import by_step, commit, newest_complete, verify
from vcppo.errors import CheckpointError


def make(root: Path, step: int, *, whole: bool = True, fingerprint: str = "f") -> Path:
    directory = root / f"{PREFIX}{step}"
    (directory / "actor").mkdir(parents=True)
    (directory / "actor" / "weights").write_bytes(bytes([step]) * 100)
    if whole:
        commit(directory, {"step": step, "fingerprint": fingerprint})
    return directory


def test_sweep_keeps_the_newest_complete_and_the_pinned(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        make(tmp_path, step)
    make(tmp_path, 5, whole=False)
    assert sweep(tmp_path, keep=2, pinned=frozenset({1})) == [2, 5]
    assert list(by_step(tmp_path, PREFIX)) == [1, 3, 4]


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path: Path) -> None:
    directory = make(tmp_path, 1, fingerprint="other")
    with pytest.raises(CheckpointError, match="other.*mine.*start anew"):
        check_fingerprint(directory, "mine")
    check_fingerprint(directory, "other")


def test_the_last_good_checkpoint_is_the_newest_before_the_trouble(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        make(tmp_path, step)
    make(tmp_path, 5, whole=False)
    assert last_before(tmp_path, 6) == 4
    assert last_before(tmp_path, 2) is None


def test_checkpoints_since_the_trouble_are_kept_but_never_resumed(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        make(tmp_path, step)
    assert set_aside(tmp_path, 4) == [4, 6]
    assert newest_complete(tmp_path, PREFIX) == (2, tmp_path / "global_step_2")
    assert (tmp_path / "diverged_step_6" / "actor" / "weights").is_file()
    make(tmp_path, 6)  # the same trouble again, after a resume
    assert set_aside(tmp_path, 5) == [6]
    assert verify(tmp_path / "diverged_step_6")["step"] == 6
