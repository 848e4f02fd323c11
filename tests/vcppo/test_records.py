"""Run records: read back as written, and honest about the code that made them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vcppo import records
from vcppo.errors import DataError
from vcppo.records import Artifact, RunRecord, code_state, read_record, read_records, render


def record(stage: str = "train") -> RunRecord:
    return RunRecord(
        stage=stage,
        fingerprint="0123456789abcdef",
        started="2025-01-01T00:00:00+00:00",
        finished="2025-01-01T00:01:00+00:00",
        seconds=60.0,
        inputs=(Artifact(path="data/prepared", sha256="aa", bytes=3, detail={"revision": "ü"}),),
        outputs=(Artifact(path="models/policy", sha256="bb", bytes=4),),
        parameters={"seed": 1},
        configuration={"seed": 1},
        runtime={"device": "cpu"},
        code={"commit": "c0ffee", "dirty": False},
        environment={"python": "3.11"},
        attempts=({"attempt": 1, "outcome": "succeeded"},),
        metrics={"score": 0.5},
    )


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    for number, (key, value) in enumerate((("user.name", "T"), ("user.email", "t@example.invalid"))):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    for name in ("code.py", "dvc.lock", "params.yaml", ".gitignore", "metrics.json"):
        (tmp_path / name).write_text("1\n")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "x"], check=True)
    return tmp_path


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(render(record()), encoding="utf-8")
    assert read_record(path) == record()
    assert '"ü"' in path.read_text(encoding="utf-8")


def test_all_records_of_a_workspace_are_found_by_stage(tmp_path: Path) -> None:
    for stage in ("train", "evaluate"):
        (tmp_path / f"{stage}.json").write_text(render(record(stage)))
    assert set(read_records(tmp_path)) == {"train", "evaluate"}
    assert read_records(tmp_path / "none") == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stage": "train"}', '{"unknown": 1}'])
def test_a_torn_or_foreign_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"train\.json: is no readable run record"):
        read_records(tmp_path)


def test_a_clean_checkout_is_its_commit_and_what_the_pipeline_writes_is_not_code(repository: Path) -> None:
    (repository / "dvc.lock").write_text("2")
    (repository / "params.yaml").write_text("2")
    (repository / ".gitignore").write_text("/models\n")
    (repository / "metrics.json").write_text("2")
    (repository / "plots").mkdir()
    (repository / "plots" / "a.csv").write_text("1")
    (repository / "plots" / ".gitignore").write_text("/b")
    state = code_state(made=["metrics.json", "plots/a.csv", "absent"])
    assert len(state["commit"]) == 40 and state["dirty"] is False


@pytest.mark.parametrize("file", ["code.py", "new.py", "plots/other.csv"])
def test_a_changed_or_new_file_makes_the_tree_dirty(repository: Path, file: str) -> None:
    (repository / file).parent.mkdir(exist_ok=True)
    (repository / file).write_text("2\n")
    assert code_state(made=["plots/a.csv"])["dirty"] is True


def test_without_git_the_commit_is_unknown_and_so_is_dirt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_state() == {"commit": None, "dirty": None}


def test_the_environment_names_installed_versions_and_none_for_absent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "PACKAGES", ("pydantic", "no-such-package"))
    packages = records.environment()["packages"]
    assert packages["no-such-package"] is None and packages["pydantic"][0].isdigit()


def test_the_flow_run_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert records.flow_run() is None
    monkeypatch.setenv("VCPPO_FLOW_RUN", "nightly/abc")
    assert records.flow_run() == "nightly/abc"
