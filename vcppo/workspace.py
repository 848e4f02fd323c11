"""A workspace of its own for each profile: `runs/PROFILE`, a git worktree that shares the checkout's DVC
cache.

DVC allows one `repro` at a time per workspace, and a nightly run must train committed code whatever is being
edited in the checkout. What a workspace has made (dvc.lock, metrics, plots, outputs) stays when its code
moves on.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vcppo.config import load_config
from vcppo.config.load import ROOT
from vcppo.errors import ConfigurationError, StorageError
from vcppo.files import storage_errors, write_text_atomic
from vcppo.pipeline import ABLATION, ABLATION_SOURCE, made_by_pipelines
from vcppo.workdir import lock_file

ROOT_VARIABLE = "VCPPO_ROOT"
"""Environment variable: the checkout. Relative paths of file sources start there, in every workspace."""
WORKSPACES = "runs"


def checkout_root() -> Path:
    """The checkout that workspaces belong to: VCPPO_ROOT, else that of the workspace in which this code lies,
    else where it lies."""
    if named := os.environ.get(ROOT_VARIABLE):
        return Path(named).resolve()
    in_workspace = ROOT.parent.name == WORKSPACES and (ROOT / ".git").is_file()
    return ROOT.parents[1] if in_workspace else ROOT


@contextlib.contextmanager
def open_workspace(profile: str, root: Path | None = None) -> Iterator[Path]:
    """The workspace of a profile at the checkout's current commit, ours alone until the block ends.

    Raises ConfigurationError for a profile that is not committed or a checkout without git, LeaseHeldError
    while another process works in the workspace.
    """
    root = checkout_root() if root is None else root.resolve()
    commit = _head(root)
    _check_committed(root, profile)
    path = root / WORKSPACES / profile
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
        lock = lock_file(path.parent / f".{profile}.lock", f"{path}: another process works in this workspace")
        try:
            lock.truncate(0)
            lock.write(f"process {os.getpid()}\n")
            lock.flush()
            _bring_to(root, path, commit)
            profile_file = path / "profiles" / f"{profile}.yaml"
            config = load_config(profile_file)
            write_text_atomic(path / "params.yaml", profile_file.read_text(encoding="utf-8"))
            if config.ablation is not None:
                source = (path / ABLATION_SOURCE).read_text(encoding="utf-8")
                write_text_atomic(path / ABLATION, source)
            _share_dvc(root, path)
            yield path
        finally:
            lock.close()


def _head(root: Path) -> str:
    try:
        return _git(root, "rev-parse", "--verify", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        raise ConfigurationError(
            f"{root}: is no git checkout with a commit; a workspace is a git worktree: clone the repository, "
            "or `git init` and commit"
        ) from None


def _check_committed(root: Path, profile: str) -> None:
    files = _git(root, "ls-tree", "--name-only", "HEAD", "profiles/").splitlines()
    names = [Path(file).stem for file in files if file.endswith(".yaml")]
    if profile not in names:
        raise ConfigurationError(
            f"profile: got {profile!r}, committed are {', '.join(names)} (files in profiles/); "
            "a workspace runs committed code: commit a new profile first"
        )


def _bring_to(root: Path, path: Path, commit: str) -> None:
    if not (path / ".git").is_file():
        _git(root, "worktree", "prune")
        try:
            _git(root, "worktree", "add", "--force", "--detach", str(path), commit)
        except subprocess.CalledProcessError as error:
            raise StorageError(
                f"{path}: cannot be made a git worktree: {error.stderr.strip().splitlines()[-1]}; "
                "move it away and run again"
            ) from None
        return
    # not `git checkout`: the results that the workspace has written over tracked files must stay
    apart = [f":(exclude){made}" for made in made_by_pipelines(path)]
    _git(path, "restore", f"--source={commit}", "--staged", "--worktree", "--", ".", *apart)
    _git(path, "update-ref", "--no-deref", "HEAD", commit)


def _share_dvc(root: Path, path: Path) -> None:
    """Point the workspace's DVC to the checkout's cache and remotes, with absolute paths."""
    from dvc.config import Config

    checkout = Config(dvc_dir=str(root / ".dvc"))
    levels = [checkout.load_one("repo"), checkout.load_one("local")]  # relative paths come out absolute
    local = path / ".dvc" / "config.local"
    local.touch(mode=0o600)  # the checkout's own config.local may hold keys
    with Config(dvc_dir=str(path / ".dvc")).edit("local") as ours:
        ours.setdefault("cache", {})["dir"] = str(root / ".dvc" / "cache")
        for level in levels:
            ours["cache"].update(_plain(level.get("cache", {})))
            ours["core"] = {**ours.get("core", {}), **_plain(level.get("core", {}))}
            for name, remote in level.get("remote", {}).items():
                ours.setdefault("remote", {}).setdefault(name, {}).update(_plain(remote))


def _plain(section: Mapping[str, Any]) -> dict[str, Any]:
    # DVC's own path strings would be written back relative to the file that they stand in
    return {key: str(value) if isinstance(value, str) else value for key, value in section.items()}


def _git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True, text=True)
    return done.stdout.strip()
