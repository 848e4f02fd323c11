"""Files are whole or absent, whatever is killed or refused."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vcppo.errors import DataError, StorageError
from vcppo.files import (
    path_size,
    publish,
    remove,
    sha256_json,
    sha256_path,
    storage_errors,
    write_json_atomic,
    write_text_atomic,
)


def tree(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def names(path: Path) -> list[str]:
    return sorted(p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())


def test_the_hash_of_a_folder_depends_on_names_and_bytes_and_not_on_byte_code(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one", a="1", b="2"), tree(tmp_path / "two", b="2", a="1")
    assert sha256_path(one) == sha256_path(two)
    tree(one, **{"__pycache__/a.pyc": "code"})
    assert sha256_path(one) == sha256_path(two)
    assert sha256_path(tree(tmp_path / "swapped", a="2", b="1")) != sha256_path(one)
    assert sha256_path(tree(tmp_path / "renamed", a="1", c="2")) != sha256_path(one)


def test_the_hash_of_nothing_is_an_error_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: there is no such file"):
        sha256_path(tmp_path / "nowhere")


def test_the_hash_of_a_value_does_not_depend_on_the_order_of_keys() -> None:
    assert sha256_json({"a": 1, "b": [1.5]}) == sha256_json({"b": [1.5], "a": 1}) != sha256_json({"a": 1})


def test_size_counts_every_file_below(tmp_path: Path) -> None:
    assert path_size(tree(tmp_path / "t", a="12", **{"sub/b": "345"})) == 5


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "value.json"
    write_json_atomic(target, {"old": 1})
    with pytest.raises(ValueError, match="Out of range float"):
        write_json_atomic(target, {"new": float("nan")})
    with pytest.raises(UnicodeEncodeError):
        write_text_atomic(target, "\ud800")
    assert target.read_text() == '{\n  "old": 1\n}\n'
    assert names(tmp_path) == ["value.json"]


def test_a_writer_killed_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from vcppo.files import write_text_atomic\n"
        "n = 0\n"
        "while True: n += 1; write_text_atomic(Path(sys.argv[1]), str(n % 10) * 300_000)\n"
    )
    target = tmp_path / "big.txt"
    for delay in (0.0, 0.013, 0.029):
        writer = subprocess.Popen([sys.executable, "-c", program, str(target)])
        while not target.exists():
            time.sleep(0.005)
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        text = target.read_text()
        assert len(text) == 300_000 and len(set(text)) == 1


@pytest.mark.parametrize("link", [True, False])
def test_publishing_replaces_what_stands_there_and_keeps_the_staged_tree(tmp_path: Path, link: bool) -> None:
    staged = tree(tmp_path / "staged", a="new", **{"sub/b": "b"})
    target = tree(tmp_path / "out" / "target", a="old", gone="x")
    publish(staged, target, link=link)
    assert names(target) == ["a", "sub/b"] and (target / "a").read_text() == "new"
    assert (target / "a").samefile(staged / "a") is link
    assert names(staged) == ["a", "sub/b"]
    assert [p.name for p in target.parent.iterdir()] == ["target"]


def test_publishing_a_file_over_a_folder_and_a_folder_over_a_file(tmp_path: Path) -> None:
    file, folder = tree(tmp_path, f="text") / "f", tree(tmp_path / "d", a="1")
    publish(file, tree(tmp_path / "t1", x="1"), link=True)
    publish(folder, tree(tmp_path, t2="1") / "t2", link=True)
    assert (tmp_path / "t1").read_text() == "text" and names(tmp_path / "t2") == ["a"]


def test_publishing_removes_what_a_killed_publisher_left_beside_its_own_target_only(tmp_path: Path) -> None:
    tree(tmp_path, **{".policy.1234.partial/half": "x", ".policy2.1234.partial": "other"})
    publish(tree(tmp_path / "staged", a="1"), tmp_path / "policy", link=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".policy2.1234.partial", "policy", "staged"]


def test_publishing_copies_where_the_file_system_cannot_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        monkeypatch.setattr(
            os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "cross-device"))
        )
        target = tmp_path / "target"
    else:
        target = shm / f"vcppo-test-{os.getpid()}"
    try:
        publish(tree(tmp_path / "staged", a="1"), target, link=True)
        assert (target / "a").read_text() == "1"
    finally:
        remove(target)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left on the device; free some"),
        (errno.EDQUOT, "no space left"),
        (errno.EACCES, "no permission; change its owner or mode"),
        (errno.EROFS, "the file system is read-only"),
        (errno.ENOTDIR, "a file stands where a directory is needed"),
    ],
)
def test_what_the_file_system_refuses_becomes_a_message_with_path_and_advice(number: int, words: str) -> None:
    with pytest.raises(StorageError, match=f"models/policy: {words}"), storage_errors(Path("work")):
        raise OSError(number, "refused", "models/policy")
    with pytest.raises(StorageError, match="work: "), storage_errors(Path("work")):
        raise OSError(number, "refused")


def test_a_full_device_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="no space left"), storage_errors(Path("/dev/full")):
        Path("/dev/full").write_text("x")


def test_other_errors_pass_through_unchanged() -> None:
    with pytest.raises(ConnectionResetError), storage_errors(Path("work")):
        raise ConnectionResetError(errno.ECONNRESET, "reset")
    with pytest.raises(StorageError, match="^said before$"), storage_errors(Path("work")):
        raise StorageError("said before")


def test_a_folder_that_may_not_be_written_is_a_storage_error_and_stays_as_it_was(tmp_path: Path) -> None:
    target = tree(tmp_path / "closed", a="1")
    target.chmod(0o555)
    program = (
        "import sys; from pathlib import Path; from vcppo.files import storage_errors, write_text_atomic\n"
        "with storage_errors(Path(sys.argv[1])): write_text_atomic(Path(sys.argv[1]) / 'b', 'x')\n"
    )
    drop = _without_root_powers()
    done = subprocess.run([*drop, sys.executable, "-c", program, str(target)], capture_output=True, text=True)
    assert "StorageError" in done.stderr and "closed" in done.stderr and "no permission" in done.stderr
    assert names(target) == ["a"]


def _without_root_powers() -> list[str]:
    """A command prefix under which file modes count (root ignores them otherwise)."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def test_a_tree_that_does_not_fit_is_a_message_with_the_file_and_the_way_out(tmp_path: Path) -> None:
    failed = [("work/a", str(tmp_path / "data" / "a"), "[Errno 28] No space left on device: 'a'")]
    with pytest.raises(StorageError, match="data/a: no space left on the device"), storage_errors(tmp_path):
        raise shutil.Error(failed)
