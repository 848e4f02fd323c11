"""A checkout in small: the product's own code and profile, but toy stages. Tests run the real command lines
in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
TOY = Path(__file__).resolve().parent
COPIED = (
    "vcppo", "flows", "tasks/__init__.py", "tasks/__main__.py", "tasks/ending.py", "tasks/stage.py",
    "profiles/tiny.yaml",
    ".dvc/config", ".dvc/.gitignore", ".dvcignore", ".gitignore", "prefect.yaml", "prefect.toml",
)  # fmt: skip


def make_checkout(path: Path) -> Path:
    """A git repository at `path` with the toy pipeline, params.yaml the tiny profile, everything
    committed."""
    for name in COPIED:
        source, target = ROOT / name, path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    shutil.copytree(TOY / "tasks", path / "tasks", dirs_exist_ok=True)
    shutil.copy2(TOY / "dvc.yaml", path / "dvc.yaml")
    shutil.copy2(path / "profiles" / "tiny.yaml", path / "params.yaml")
    (path / "source.txt").write_text("from outside\n")
    git(path, "init", "-q", "-b", "main")
    commit(path, "Toy")
    return path


def git(path: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Toy", "-c", "user.email=toy@example.invalid"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=path, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(path: Path, message: str) -> str:
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", message)
    return git(path, "rev-parse", "HEAD")


def environment(**more: str) -> dict[str, str]:
    """The environment of a shell with this Python first, and no variable of ours or of Prefect's left
    over."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("VCPPO_", "PREFECT_", "PYTHONPATH"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "DVC_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1", **more}


def python(path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`python ARGUMENTS` in the checkout, stdout and stderr apart."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=path, env=environment(**more), capture_output=True, text=True
    )


def set_param(path: Path, old: str, new: str) -> None:
    """Replace one piece of params.yaml by another."""
    text = (path / "params.yaml").read_text()
    assert old in text
    (path / "params.yaml").write_text(text.replace(old, new, 1))


def working_in(folder: Path) -> list[psutil.Process]:
    """Live processes whose current directory is the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == folder:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
