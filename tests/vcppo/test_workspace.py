"""A workspace runs committed code, keeps its results when the code moves on, and belongs to one process."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import commit, environment, git, make_checkout, python
from vcppo.config import load_params, load_profile
from vcppo.errors import ConfigurationError, LeaseHeldError, StorageError
from vcppo.workspace import checkout_root, open_workspace


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout")


def test_a_new_workspace_is_the_committed_code_with_the_profiles_values(checkout: Path) -> None:
    (checkout / "tasks" / "train.py").write_text("raise SystemExit('being edited')\n")
    (checkout / "params.yaml").write_text("edited: by hand\n")
    with open_workspace("tiny", checkout) as workspace:
        assert workspace == checkout / "runs" / "tiny"
        assert git(workspace, "rev-parse", "HEAD") == git(checkout, "rev-parse", "HEAD")
        assert "being edited" not in (workspace / "tasks" / "train.py").read_text()
        assert load_params(workspace / "params.yaml") == load_profile("tiny")
        assert git(workspace, "status", "--porcelain") == ""
    assert git(checkout, "status", "--porcelain", "--", "runs") == ""


def test_results_stay_when_the_code_moves_on_and_removed_files_go(checkout: Path) -> None:
    (checkout / "metrics").mkdir()
    (checkout / "metrics" / "train.json").write_text("committed")
    (checkout / "dvc.lock").write_text("committed")
    (checkout / "old.py").write_text("")
    commit(checkout, "results and a file")
    with open_workspace("tiny", checkout) as workspace:
        (workspace / "metrics" / "train.json").write_text("made here")
        (workspace / "dvc.lock").write_text("made here")
        (workspace / "tasks" / "train.py").write_text("edited in the workspace")
    git(checkout, "rm", "-q", "old.py")
    (checkout / "new.py").write_text("")
    (checkout / "metrics" / "train.json").write_text("committed again")
    (checkout / "dvc.lock").write_text("committed again")
    head = commit(checkout, "moved on")
    with open_workspace("tiny", checkout) as workspace:
        assert git(workspace, "rev-parse", "HEAD") == head
        assert (workspace / "new.py").exists() and not (workspace / "old.py").exists()
        assert (workspace / "dvc.lock").read_text() == "made here"
        assert (workspace / "metrics" / "train.json").read_text() == "made here"
        assert (workspace / "tasks" / "train.py").read_text() == (checkout / "tasks" / "train.py").read_text()
    assert git(checkout, "rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_two_profiles_have_two_workspaces(checkout: Path) -> None:
    text = (checkout / "profiles" / "tiny.yaml").read_text()
    (checkout / "profiles" / "tiny2.yaml").write_text(text.replace("profile: tiny", "profile: tiny2"))
    commit(checkout, "second profile")
    with open_workspace("tiny", checkout) as one, open_workspace("tiny2", checkout) as two:
        assert load_params(one / "params.yaml").profile == "tiny"
        assert load_params(two / "params.yaml").profile == "tiny2"


def test_a_profile_that_is_not_committed_is_refused_with_those_that_are(checkout: Path) -> None:
    shutil.copy(checkout / "profiles" / "tiny.yaml", checkout / "profiles" / "mine.yaml")
    with pytest.raises(
        ConfigurationError, match=r"got 'mine', committed are tiny .*commit a new profile first"
    ):
        open_workspace("mine", checkout).__enter__()
    assert not (checkout / "runs").exists()


def test_a_committed_profile_with_a_wrong_value_names_it_and_params_stay(checkout: Path) -> None:
    with open_workspace("tiny", checkout):
        pass
    (checkout / "profiles" / "tiny.yaml").write_text("profile: tiny\nsede: 3\n")
    commit(checkout, "broken")
    with pytest.raises(ConfigurationError, match="sede: unknown key"):
        open_workspace("tiny", checkout).__enter__()
    assert load_params(checkout / "runs" / "tiny" / "params.yaml") == load_profile("tiny")
    with pytest.raises(ConfigurationError):
        open_workspace("tiny", checkout).__enter__()  # and the lease was given back


def test_a_folder_that_is_no_git_checkout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigurationError, match="is no git checkout with a commit"):
        open_workspace("tiny", tmp_path).__enter__()


def test_a_foreign_folder_in_the_way_is_named_and_not_touched(checkout: Path) -> None:
    foreign = checkout / "runs" / "tiny" / "notes.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    with pytest.raises(StorageError, match="runs/tiny: cannot be made a git worktree: .*already exists"):
        open_workspace("tiny", checkout).__enter__()
    assert foreign.read_text() == "mine"


def test_a_workspace_removed_by_hand_is_made_again(checkout: Path) -> None:
    with open_workspace("tiny", checkout) as workspace:
        pass
    shutil.rmtree(workspace)
    with open_workspace("tiny", checkout) as workspace:
        assert (workspace / "dvc.yaml").is_file()


def test_a_workspace_in_use_is_refused_until_its_process_ends_even_by_a_kill(checkout: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from vcppo.workspace import open_workspace\n"
        "with open_workspace('tiny', Path(sys.argv[1])): print('open', flush=True); time.sleep(600)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(checkout)],
        cwd=checkout, env=environment(), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(
        LeaseHeldError, match=rf"another process works in this workspace \(process {holder.pid}\)"
    ):
        open_workspace("tiny", checkout).__enter__()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with open_workspace("tiny", checkout):
        pass


def test_the_checkout_is_the_named_one_or_the_one_around_the_code(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    assert checkout_root() == root
    with open_workspace("tiny", checkout) as workspace:
        program = "from vcppo.workspace import checkout_root; print(checkout_root())"
        assert python(workspace, "-c", program).stdout.strip() == str(checkout)
        assert python(checkout, "-c", program).stdout.strip() == str(checkout)
    monkeypatch.setenv("VCPPO_ROOT", str(checkout))
    assert checkout_root() == checkout


@pytest.mark.slow
def test_workspace_and_checkout_share_cache_and_remote(checkout: Path) -> None:
    dvc = ["-m", "dvc"]
    assert python(checkout, *dvc, "repro", "prepare").returncode == 0
    with open_workspace("tiny", checkout) as workspace:
        done = python(workspace, *dvc, "repro", "prepare", "train")
        assert done.returncode == 0, done.stderr
        assert "Stage 'prepare' is cached" in done.stdout and "Running stage 'train'" in done.stdout
        pushed = python(workspace, *dvc, "push")
        assert pushed.returncode == 0, pushed.stderr
        policy = (workspace / "models" / "policy" / "weights.json").read_text()
        assert (checkout / ".dvc" / "local-remote").is_dir() and not (workspace / ".dvc" / "cache").exists()
        shutil.rmtree(checkout / ".dvc" / "cache")
        shutil.rmtree(workspace / "models")
        pulled = python(workspace, *dvc, "pull", "train")
        assert pulled.returncode == 0, pulled.stderr
        assert (workspace / "models" / "policy" / "weights.json").read_text() == policy
    assert git(checkout, "status", "--porcelain", "--", ".dvc") == ""


@pytest.mark.slow
def test_a_remote_of_the_checkouts_own_is_used_in_the_workspace_with_its_keys_unreadable_to_others(
    checkout: Path, tmp_path: Path
) -> None:
    add = ["-m", "dvc", "remote", "add", "--local", "--default", "far", str(tmp_path / "far")]
    assert python(checkout, *add).returncode == 0
    with open_workspace("tiny", checkout) as workspace:
        listed = python(workspace, "-m", "dvc", "config", "--list").stdout.splitlines()
        assert f"remote.far.url={tmp_path / 'far'}" in listed and "core.remote=far" in listed
        assert f"remote.local.url={checkout / '.dvc' / 'local-remote'}" in listed
        assert (workspace / ".dvc" / "config.local").stat().st_mode & 0o077 == 0
