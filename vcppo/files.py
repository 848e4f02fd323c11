"""Files that are either whole or absent: hashing, atomic writes, publishing a finished tree by one rename."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vcppo.errors import DataError, StorageError


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_path(path: Path) -> str:
    """Hex SHA-256 of a file, or of a directory as the sorted list of (relative name, file hash).

    Byte code and DVC's own files do not count. Raises DataError if there is nothing at the path.
    """
    if path.is_file():
        return sha256_file(path)
    if not path.is_dir():
        raise DataError(f"{path}: there is no such file or directory")
    digest = hashlib.sha256()
    for file in sorted(walk_files(path)):
        digest.update(f"{file.relative_to(path).as_posix()}\0{sha256_file(file)}\n".encode())
    return digest.hexdigest()


def walk_files(path: Path) -> Iterator[Path]:
    """All files below a directory, without byte code."""
    for file in path.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def path_size(path: Path) -> int:
    """Bytes of a file or of all files below a directory."""
    return path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in walk_files(path))


def sha256_json(value: Any) -> str:
    """Hex SHA-256 of a JSON value in canonical form (sorted keys, no white space)."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the file system refuses below into a StorageError that names the path and the way out."""
    try:
        yield
    except shutil.Error as error:  # of a tree: a list of what failed, with the reasons as text
        target, reason = error.args[0][0][1:]
        number = re.search(r"\[Errno (\d+)\]", str(reason))
        known = _STORAGE_ADVICE.get(int(number[1]) if number else 0)
        raise StorageError(f"{target}: {known or f'cannot be written: {reason}'}") from error
    except OSError as error:
        advice = _STORAGE_ADVICE.get(error.errno or 0)
        if advice is None:
            raise
        raise StorageError(f"{error.filename or path}: {advice}") from error


_STORAGE_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "no space left on the device; free some and run again"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "no permission; change its owner or mode and run again"),
    errno.EROFS: "the file system is read-only; mount it writable, or use another place, and run again",
    errno.ENOTDIR: "a file stands where a directory is needed; move it away and run again",
}


def write_text_atomic(path: Path, text: str) -> None:
    """Write a whole text file: to a temporary name beside it, flushed to disk, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json_atomic(path: Path, value: Any) -> None:
    """Write a JSON file as `write_text_atomic` does."""
    write_text_atomic(
        path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    )


def publish(staged: Path, target: Path, *, link: bool) -> None:
    """Put a finished file or directory at its place by one rename; the staged one stays until it is removed.

    link: share the bytes by hard links where the file system can (the staged tree is about to go); False
    copies. A target has one publisher at a time: what an earlier one, killed, left beside it is removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*{_PARTIAL}"):
        remove(leftover)
    temporary = _beside(target)
    copy = _link_or_copy if link else shutil.copy2
    try:
        if staged.is_dir():
            shutil.copytree(staged, temporary, copy_function=copy)
        else:
            copy(staged, temporary)
        remove(target)
        temporary.replace(target)
    finally:
        remove(temporary)


def remove(path: Path) -> None:
    """Remove a file or a directory tree, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_unless_gone)
    else:
        path.unlink(missing_ok=True)


_PARTIAL = ".partial"


def _link_or_copy(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        # another file system, or one without hard links
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        shutil.copy2(source, target)


def _unless_gone(function: Any, path: str, error: Any) -> None:
    """Another process may sweep the same tree: what is gone already is as good as removed."""
    if not issubclass(error[0], FileNotFoundError):
        raise error[1]


def _beside(path: Path) -> Path:
    # same directory, so that the rename stays within one file system; the name carries no meaning
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
