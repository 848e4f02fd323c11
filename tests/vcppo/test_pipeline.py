"""dvc.yaml as records and work directories read it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vcppo.config import load_params, profile_names
from vcppo.config.load import load_profile
from vcppo.errors import ConfigurationError
from vcppo.pipeline import ABLATION, ABLATION_SOURCE, MAIN, load_pipeline, load_stage, upstream

ORDER = (
    "prepare", "validate", "sft", "rollouts", "reward_model",
    "pretrain_critic", "train", "evaluate", "report",
)  # fmt: skip


def write(path: Path, text: str) -> Path:
    (path / "dvc.yaml").write_text(text)
    return path


def test_the_shipped_pipeline_has_the_stages_in_the_order_in_which_they_run(root: Path) -> None:
    stages = load_pipeline(root)
    assert tuple(stages) == ORDER
    made: set[str] = set()
    for stage in stages.values():
        pending = {out for other in stages.values() for out in other.outs} - made
        assert not pending & set(stage.deps), f"{stage.name} reads what is made later"
        made |= set(stage.outs)


def test_every_stage_writes_its_record_and_no_output_belongs_to_two_stages(root: Path) -> None:
    stages = load_pipeline(root)
    outs = [out for stage in stages.values() for out in stage.outs]
    assert len(outs) == len(set(outs))
    assert all(f"records/{name}.json" in stage.outs for name, stage in stages.items())


def test_every_parameter_of_every_stage_is_a_key_of_every_profile(root: Path) -> None:
    for profile in profile_names():
        config = load_profile(profile)
        for stage in load_pipeline(root).values():
            assert set(stage.parameter_values(config)) == set(stage.params)


def test_outputs_metrics_and_plots_are_read_with_and_without_options(tmp_path: Path) -> None:
    text = (
        "stages: {a: {cmd: x, outs: [one, {two: {cache: false}}], metrics: [{m.json: {cache: false}}],"
        " plots: [{p.csv: {x: s}}]}}"
    )
    assert load_stage("a", write(tmp_path, text)).outs == ("one", "two", "m.json", "p.csv")


def test_only_the_parameters_named_are_selected_by_their_dotted_keys(root: Path, tmp_path: Path) -> None:
    stage = load_stage("a", write(tmp_path, "stages: {a: {cmd: x, params: [seed, train.gae.lam_actor]}}"))
    config = load_params(root / "profiles" / "tiny.yaml")
    assert stage.parameter_values(config) == {"seed": 1, "train.gae.lam_actor": 0.95}
    wrong = load_stage("a", write(tmp_path, "stages: {a: {cmd: x, params: [train.lambda]}}"))
    with pytest.raises(ConfigurationError, match=r"parameter 'train\.lambda' is no key"):
        wrong.parameter_values(config)


@pytest.mark.parametrize("text", ["", "stages: 3", "nothing: {}", "stages: {a: [}", "stages: {a: 1}"])
def test_a_file_that_is_no_pipeline_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"dvc\.yaml: is no DVC pipeline"):
        load_pipeline(write(tmp_path, text))


def test_a_missing_file_and_an_unknown_stage_say_what_to_do(tmp_path: Path, root: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file; run from the root of the checkout"):
        load_pipeline(tmp_path)
    with pytest.raises(ConfigurationError, match="got 'trian', allowed are prepare, validate, "):
        load_stage("trian", root)


def test_the_study_stands_on_the_main_pipeline_and_needs_no_trained_policy(root: Path) -> None:
    assert not (root / ABLATION).exists(), "DVC must not see the study in the checkout"
    stages = load_pipeline(root) | load_pipeline(root, ABLATION_SOURCE)
    study = ("ablation_critics", "ablation_runs", "ablation_report")
    assert tuple(stages) == (*ORDER, *study)
    outs = [out for stage in stages.values() for out in stage.outs]
    assert len(outs) == len(set(outs))
    base = ["prepare", "validate", "sft", "rollouts", "reward_model"]
    assert upstream(stages, "ablation_report") == [*base, *study]
    assert upstream(stages, "train") == list(ORDER[: ORDER.index("train") + 1])
    config = load_profile("ablation")
    for name in study:
        assert set(stages[name].parameter_values(config)) == set(stages[name].params)


@pytest.mark.parametrize("file", [MAIN, ABLATION_SOURCE])
def test_dvc_takes_no_output_away_before_there_is_a_new_one(root: Path, file: str) -> None:
    for name, stage in yaml.safe_load((root / file).read_text())["stages"].items():
        for entry in (*stage["outs"], *stage.get("metrics", []), *stage.get("plots", [])):
            ((path, options),) = entry.items()
            assert options["persist"] is True, f"{name}: {path}"
