"""Lineage from records: up to the sources, down to what was made, and every disagreement named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vcppo.errors import DataError
from vcppo.files import sha256_path
from vcppo.lineage import render_text, trace
from vcppo.records import Artifact, RunRecord, render


def artifact(path: str, sha256: str, kind: str = "data", **detail: Any) -> Artifact:
    return Artifact(path=path, sha256=sha256, bytes=1, kind=kind, detail=detail)


def record(stage: str, inputs: list[Artifact], outputs: list[Artifact], **more: Any) -> RunRecord:
    values: dict[str, Any] = {
        "fingerprint": f"{stage}0000000000"[:16],
        "started": "2025-01-01T00:00:00+00:00",
        "finished": "2025-01-01T00:01:00+00:00",
        "seconds": 60.0,
        "parameters": {"seed": 1},
        "configuration": {"seed": 1},
        "runtime": {},
        "code": {"commit": "c0ffee", "dirty": False},
        "environment": {},
        "attempts": ({"attempt": 1, "outcome": "succeeded"},),
        "metrics": {},
    }
    return RunRecord(stage=stage, inputs=tuple(inputs), outputs=tuple(outputs), **(values | more))


def write(workspace: Path, *records: RunRecord) -> None:
    (workspace / "records").mkdir(exist_ok=True)
    for one in records:
        (workspace / "records" / f"{one.stage}.json").write_text(render(one))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """source -> prepare -> data -> sft -> its model; data and that model -> train -> policy -> evaluate."""
    for path, text in (("data/prepared/a", "data"), ("models/sft/w", "sft"), ("models/policy/w", "policy")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    data, sft, policy = (
        artifact(path, sha256_path(tmp_path / path))
        for path in ("data/prepared", "models/sft", "models/policy")
    )
    code = artifact("training/ppo", "cc", "code")
    source = artifact("../elsewhere/source.jsonl", "dd", "source", licence="MIT")
    write(
        tmp_path,
        record("prepare", [source], [data]),
        record("sft", [data], [sft]),
        record("train", [code, data, sft], [policy], code={"commit": "c0ffee", "dirty": True}),
        record("evaluate", [policy], [artifact("metrics/evaluate.json", "ee")]),
    )
    return tmp_path


def stages(path: Path, **options: Any) -> list[str]:
    return [run.stage for run in trace(path, **options).runs]


def test_up_names_each_run_above_once_nearest_first(workspace: Path) -> None:
    assert stages(workspace / "models/policy") == ["train", "prepare", "sft"]
    assert stages(workspace / "data/prepared") == ["prepare"]


def test_down_names_each_run_below_once_nearest_first(workspace: Path) -> None:
    assert stages(workspace / "data/prepared", down=True) == ["sft", "train", "evaluate"]
    assert stages(workspace / "models/policy", down=True) == ["evaluate"]
    assert stages(workspace / "metrics/evaluate.json", down=True) == []


def test_the_file_at_the_path_is_checked_against_its_record(workspace: Path) -> None:
    policy = workspace / "models/policy"
    fresh = trace(policy)
    assert (fresh.state, fresh.made_by, fresh.mismatches) == ("unchanged", "train", [])
    (policy / "w").write_text("other")
    changed = trace(policy)
    assert changed.state == "changed" and changed.sha256_now == sha256_path(policy)
    assert "models/policy: changed since it was recorded" in changed.mismatches[0]
    (policy / "w").unlink()
    policy.rmdir()
    assert trace(policy).state == "missing" and "now nothing" in trace(policy).mismatches[0]


def test_an_input_that_was_made_again_since_is_another_version_in_both_directions(workspace: Path) -> None:
    (workspace / "models/sft/w").write_text("sft, trained again")
    again = artifact("models/sft", sha256_path(workspace / "models/sft"))
    data = artifact("data/prepared", sha256_path(workspace / "data/prepared"))
    write(workspace, record("sft", [data], [again]))
    for lineage in (trace(workspace / "models/policy"), trace(workspace / "models/sft", down=True)):
        (sentence,) = lineage.mismatches
        assert sentence.startswith("train: made from another version of models/sft")
        assert again.sha256[:12] in sentence
        assert f"! {sentence}" in render_text(lineage)
    (train,) = [run for run in trace(workspace / "models/policy").runs if run.stage == "train"]
    assert {link.path: link.match for link in train.inputs} == {
        "training/ppo": "no record",
        "data/prepared": "same",
        "models/sft": "another version",
    }


def test_a_file_inside_an_output_and_a_record_stand_for_their_stage(workspace: Path) -> None:
    inside = trace(workspace / "models/policy/w")
    assert inside.artifact.path == "models/policy" and inside.made_by == "train"
    assert stages(workspace / "records/train.json") == ["train", "prepare", "sft"]
    with pytest.raises(DataError, match="models/policy holds no such file"):
        trace(workspace / "models/policy/weights-of-another")


def test_a_source_has_nothing_above_it_and_everything_below(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    source = Path("../elsewhere/source.jsonl")
    up = trace(source, workspace=workspace)
    assert (up.made_by, up.state, up.runs) == (None, "not checked", ())
    assert "from outside the pipeline" in render_text(up)
    assert stages(source, down=True, workspace=workspace) == ["prepare", "sft", "train", "evaluate"]
    assert stages(Path("training/ppo"), down=True) == ["train", "evaluate"]


def test_the_workspace_is_the_one_around_the_path_not_the_current_folder(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert trace(workspace / "models/policy").workspace == str(workspace)
    monkeypatch.chdir(workspace / "models")
    assert trace(Path("policy")).artifact.path == "models/policy"
    assert trace(Path("../models/policy/")).artifact.path == "models/policy"


def test_an_unknown_path_lists_the_known_ones_and_no_records_say_what_makes_them(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(
        DataError, match=r"models/police: no record knows this path; known are .*models/policy"
    ):
        trace(workspace / "models/police")
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(DataError, match="there are no run records; every stage writes one"):
        trace(empty / "models/policy", workspace=empty)


def test_the_text_names_code_configuration_parameters_attempts_and_hashes(workspace: Path) -> None:
    lineage = trace(workspace / "models/policy")
    text = render_text(lineage)
    train = lineage.runs[0]
    for piece in (
        "code           c0ffee with uncommitted changes",
        f"configuration  {train.configuration_sha256[:16]}, fingerprint train0",
        "parameter      seed = 1",
        "attempts: succeeded",
        f"made           models/policy  {lineage.artifact.sha256[:16]}",
        "(made by sft)",
        "training/ppo  cc  (code)",
        "(source)",
    ):
        assert piece in text
    assert lineage.artifact.sha256 in text


def test_the_json_is_read_back_as_the_same_lineage(workspace: Path) -> None:
    lineage = trace(workspace / "models/policy")
    assert type(lineage).model_validate_json(lineage.model_dump_json()) == lineage
