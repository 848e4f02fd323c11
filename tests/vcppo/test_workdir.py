"""One live process per run; a retry finds its own directory and nothing of another configuration."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vcppo.errors import CheckpointError, LeaseHeldError, StorageError
from vcppo.workdir import WorkDirectory, fingerprint, open_work_directory

LAYOUT = {"device": "cpu", "num_workers": 1}
HOLDER = (
    "import sys, time; from pathlib import Path; from vcppo.workdir import open_work_directory\n"
    "opened = open_work_directory(Path(sys.argv[1]), 'train', 'abc', {'device': 'cpu', 'num_workers': 1})\n"
    "print(opened.attempt, flush=True); time.sleep(600)\n"
)


def opened(root: Path, print_: str = "abc") -> WorkDirectory:
    return open_work_directory(root, "train", print_, LAYOUT)


def hold(root: Path) -> subprocess.Popen[str]:
    """A live process that holds the lease."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(root)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout and holder.stdout.readline().strip().isdigit()
    return holder


def test_a_fingerprint_changes_with_stage_parameters_and_inputs_and_with_nothing_else() -> None:
    base = fingerprint("train", {"seed": 1, "lr": 0.1}, {"data": "aa", "code": "bb"})
    assert base == fingerprint("train", {"lr": 0.1, "seed": 1}, {"code": "bb", "data": "aa"})
    assert len(base) == 16 and int(base, 16)
    others = {
        fingerprint("sft", {"seed": 1, "lr": 0.1}, {"data": "aa", "code": "bb"}),
        fingerprint("train", {"seed": 2, "lr": 0.1}, {"data": "aa", "code": "bb"}),
        fingerprint("train", {"seed": 1, "lr": 0.1}, {"data": "aa", "code": "cc"}),
        fingerprint("train", {"seed": 1, "lr": 0.1}, {"data": "aa"}),
    }
    assert len(others) == 4 and base not in others


def test_each_opening_is_an_attempt_and_one_without_outcome_was_killed(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.write_outcome({"attempt": 1, "outcome": "failed", "class": "DataError"})
    first.close()
    opened(tmp_path).close()
    third = opened(tmp_path)
    assert (first.attempt, third.attempt) == (1, 3)
    assert [a["outcome"] for a in third.attempts()] == ["failed", "killed"]
    third.write_outcome({"attempt": 3, "outcome": "succeeded"})
    assert [a["outcome"] for a in third.attempts()] == ["failed", "killed", "succeeded"]
    assert third.log_path().name == "3.log"


def test_a_directory_in_use_is_refused_and_names_its_holder(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    try:
        with pytest.raises(
            LeaseHeldError, match=rf"another process works on this run \(process {holder.pid}, "
        ):
            opened(tmp_path)
        opened(tmp_path, "another-configuration").close()
    finally:
        holder.kill()
        holder.wait()


def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert opened(tmp_path).attempt == 2


def test_one_process_cannot_open_a_directory_twice(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(LeaseHeldError):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_a_refused_opening_counts_no_attempt(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(LeaseHeldError):
        opened(tmp_path)
    first.close()
    with pytest.raises(CheckpointError):
        open_work_directory(tmp_path, "train", "abc", {**LAYOUT, "num_workers": 2})
    assert opened(tmp_path).attempt == 2


def test_another_layout_is_refused_by_name_unless_allowed(tmp_path: Path) -> None:
    opened(tmp_path).close()
    other = {"device": "cpu", "num_workers": 4}
    with pytest.raises(CheckpointError, match=r"num_workers was 1 and is 4.*VCPPO_ALLOW_LAYOUT_CHANGE=1"):
        open_work_directory(tmp_path, "train", "abc", other)
    open_work_directory(tmp_path, "train", "abc", other, allow_layout_change=True).close()
    with pytest.raises(CheckpointError, match="num_workers was 4 and is 1"):
        opened(tmp_path)


def test_a_result_stays_until_the_directory_is_discarded(tmp_path: Path) -> None:
    first = opened(tmp_path)
    assert not first.finished
    first.mark_finished({"metrics": {"loss": 0.5}})
    first.close()
    second = opened(tmp_path)
    assert second.finished and second.result() == {"metrics": {"loss": 0.5}}
    second.discard()
    second.close()
    assert list((tmp_path / "train").iterdir()) == []
    third = opened(tmp_path)
    assert third.attempt == 1 and not third.finished


def test_what_a_discard_left_when_it_was_killed_is_swept_and_never_resumed(tmp_path: Path) -> None:
    half = tmp_path / "train" / ".abc.0123.discarded"
    (half / "out").mkdir(parents=True)
    (half / "finished.json").write_text("{}")
    assert not opened(tmp_path).finished
    assert not half.exists()


def test_whoever_locked_a_file_that_was_discarded_meanwhile_leases_the_new_one(tmp_path: Path) -> None:
    # the holder renames its directory away between the other's open and lock: two racers meet that often
    script = (
        "import sys; from pathlib import Path; from vcppo.workdir import open_work_directory\n"
        "for _ in range(150):\n"
        "    try: opened = open_work_directory(Path(sys.argv[1]), 'train', 'abc', {})\n"
        "    except Exception as error:\n"
        "        assert type(error).__name__ == 'LeaseHeldError', repr(error)\n"
        "        continue\n"
        "    mark = opened.path / 'mine'\n"
        "    assert not mark.exists()\n"
        "    mark.touch(); opened.discard(); opened.close()\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [(racer.communicate()[1], racer.returncode) for racer in racers] == [("", 0), ("", 0)]


def test_the_layout_on_disk_is_that_of_the_last_allowed_opening(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    assert json.loads((directory.path / "layout.json").read_text()) == LAYOUT


def test_what_was_kept_after_publishing_makes_room_whatever_its_layout_and_the_lease_holds(
    tmp_path: Path,
) -> None:
    kept = opened(tmp_path)
    (kept.path / "checkpoints").mkdir()
    kept.mark_finished({})
    kept.mark_published()
    kept.close()
    again = open_work_directory(tmp_path, "train", "abc", {"device": "cpu", "num_workers": 2})
    assert (again.replaced, again.finished, again.attempt) == (True, False, 1)
    assert not (again.path / "checkpoints").exists()
    with pytest.raises(LeaseHeldError):
        opened(tmp_path)
    again.close()
    resumed = open_work_directory(tmp_path, "train", "abc", {"device": "cpu", "num_workers": 2})
    assert (resumed.replaced, resumed.attempt) == (False, 2)


def test_a_place_that_cannot_be_made_is_named_and_not_tried_for_ever(tmp_path: Path) -> None:
    (tmp_path / "scratch").symlink_to(tmp_path / "not mounted")
    with pytest.raises(StorageError, match="scratch/train/abc: cannot be made.*set VCPPO_STORAGE_DIR"):
        open_work_directory(tmp_path / "scratch", "train", "abc", LAYOUT)
