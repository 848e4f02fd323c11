"""Files that are either whole or absent: hashing, atomic writes, publishing a finished tree by one rename."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
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
    """Turn "no space" and "no permission" below into a StorageError that names the path and the way out."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(f"{error.filename or path}: no space left on the device; free some and run again") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(
                f"{error.filename or path}: no permission to write; change its owner or mode and run again"
            ) from error
        raise


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
    write_text_atomic(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def publish(staged: Path, target: Path, *, link: bool) -> None:
    """Put a finished file or directory at its place by one rename; the staged one stays until it is removed.

    link: share the bytes by hard links (the staged tree is about to go); False copies them.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(target)
    try:
        if staged.is_dir():
            shutil.copytree(staged, temporary, copy_function=os.link if link else shutil.copy2)
        elif link:
            temporary.hardlink_to(staged)
        else:
            shutil.copy2(staged, temporary)
        remove(target)
        temporary.replace(target)
    finally:
        remove(temporary)


def remove(path: Path) -> None:
    """Remove a file or a directory tree, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    # same directory, so that the rename stays within one file system; the name carries no meaning
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
