"""Shipped profiles load and hold the papers' values; wrong keys and values are named with what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from vcppo.config import (
    Config,
    Runtime,
    dump_yaml,
    load_config,
    load_params,
    load_profile,
    load_runtime,
    profile_names,
)
from vcppo.config import load as load_module
from vcppo.errors import ConfigurationError
from vcppo.pipeline import ABLATION_SOURCE, MAIN, load_pipeline

ROOT = load_module.ROOT


@pytest.fixture
def tiny() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((ROOT / "profiles" / "tiny.yaml").read_text(encoding="utf-8"))
    return values


@pytest.fixture
def complaint(tiny: dict[str, Any], tmp_path: Path) -> Callable[[str, Any], list[str]]:
    """Sets one dotted key of the tiny profile; returns the lines of the error, file name taken off."""

    def provoke(key: str, value: Any) -> list[str]:
        *sections, last = key.split(".")
        place: Any = tiny
        for part in sections:
            place = place[int(part)] if part.isdigit() else place[part]
        if value is KeyError:
            del place[last]
        else:
            place[last] = value
        path = tmp_path / "params.yaml"
        path.write_text(yaml.safe_dump(tiny), encoding="utf-8")
        with pytest.raises(ConfigurationError) as caught:
            load_config(path)
        lines = str(caught.value).splitlines()
        assert all(line.startswith(f"{path}: ") for line in lines)
        return [line.removeprefix(f"{path}: ") for line in lines]

    return provoke


@pytest.mark.parametrize("name", profile_names())
def test_shipped_profile_loads_under_its_own_name_and_survives_being_written_out(
    name: str, tmp_path: Path
) -> None:
    config = load_profile(name)
    assert config.profile == name
    (tmp_path / "resolved.yaml").write_text(dump_yaml(config), encoding="utf-8")
    assert load_config(tmp_path / "resolved.yaml") == config


def test_a_misspelt_variable_is_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCPPO_NUM_NODE", "8")
    with pytest.raises(
        ConfigurationError, match=r"VCPPO_NUM_NODE: no such variable; did you mean VCPPO_NUM_NODES\?"
    ):
        load_runtime()


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VCPPO_STORAGE_DIR", "VCPPO_RAY_ADDRESS", "VCPPO_NUM_NODES"):
        monkeypatch.setenv(name, "")
    assert load_runtime() == Runtime()
    assert load_runtime().work_root == Path("work")


def test_the_shipped_profiles_are_these() -> None:
    assert profile_names() == [
        "ablation",
        "independent-steps",
        "one-gpu",
        "smollm2-135m",
        "tiny",
        "vcppo-32b",
    ]


def test_params_yaml_is_the_tiny_profile() -> None:
    assert (ROOT / "params.yaml").read_bytes() == (ROOT / "profiles" / "tiny.yaml").read_bytes()
    assert load_params(ROOT / "params.yaml") == load_profile("tiny")


def test_the_paper_profile_holds_the_published_values() -> None:
    config = load_profile("vcppo-32b")
    train = config.train
    assert (train.gae.gamma, train.gae.lam_actor, train.gae.lam_critic) == (1.0, 0.95, 1.0)
    assert (train.reward.right, train.reward.wrong) == (1.0, -1.0)
    assert train.critic.value_clip is None
    assert config.pretrain_critic.start_from == "reward_model"
    assert train.critic_start == "value_pretrained"
    assert config.data.max_prompt_tokens + config.data.max_response_tokens == 16 * 1024
    # VAPO's plain-PPO baseline
    assert (train.prompts_per_step, train.samples_per_prompt, train.actor.mini_batch_size) == (8192, 1, 512)
    assert (train.actor.optimizer.learning_rate, train.critic.optimizer.learning_rate) == (1e-6, 2e-6)
    assert (train.actor.clip_ratio_low, train.actor.clip_ratio_high) == (0.2, 0.2)
    assert (config.evaluate.samples_per_problem, config.evaluate.sampling.top_p) == (32, 0.7)


def test_every_training_value_of_the_paper_profile_says_where_it_comes_from() -> None:
    text = (ROOT / "profiles" / "vcppo-32b.yaml").read_text(encoding="utf-8")
    train = text[text.index("\ntrain:") : text.index("\nevaluate:")]
    unmarked = [
        line.strip()
        for line in train.splitlines()
        if re.search(r":\s+[-\d{]|null", line) and not re.search(r"# (VC-PPO|VAPO baseline|not given)", line)
    ]
    assert unmarked == []


def test_smollm2_holds_out_200_grade_school_problems() -> None:
    sources = load_profile("smollm2-135m").data.sources
    assert [(source.name, source.use, source.grader, source.eval_count) for source in sources] == [
        ("gsm8k", "split", "math", 200),
        ("aime24", "eval", "aime", 0),
    ]


@pytest.mark.parametrize("name", profile_names())
def test_every_parameter_that_dvc_watches_is_a_key_of_the_profile(name: str) -> None:
    config = load_profile(name)
    for stage in load_pipeline(ROOT).values():
        assert list(stage.parameter_values(config)) == list(stage.params)


@pytest.mark.parametrize("name", profile_names())
def test_every_parameter_that_dvc_watches_is_written_out_in_the_profile(name: str) -> None:
    """DVC reads params.yaml itself, knows no defaults, and refuses a stage whose parameter is missing."""
    values = yaml.safe_load((ROOT / "profiles" / f"{name}.yaml").read_text(encoding="utf-8"))
    files = [MAIN, ABLATION_SOURCE] if "ablation" in values else [MAIN]
    missing = []
    for key in {
        key for file in files for stage in load_pipeline(ROOT, file).values() for key in stage.params
    }:
        found = values
        for part in key.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        missing += [key] if found is None else []
    assert not missing


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("train.gae.lam_actor", 1.5, "got 1.5: allowed is a number from 0 to 1, or 'length_adaptive'"),
        ("train.gae.lam_actor", True, "got True: allowed is a number from 0 to 1, or 'length_adaptive'"),
        ("train.num_steps", True, "got True: allowed is a whole number of at least 1"),
        ("train.gae.lam_critic", -0.1, "got -0.1: allowed is a number from 0 to 1"),
        ("train.gae.gamma", "high", "got 'high': allowed is a number from 0 to 1"),
        ("train.gae.length_adaptive_alpha", 0, "got 0: allowed is a number above 0"),
        ("train.algorithm", "dpo", "got 'dpo': allowed is 'vc_ppo', 'ppo', 'vapo' or 'grpo'"),
        ("train.num_steps", 2.5, "got 2.5: allowed is a whole number of at least 1"),
        ("train.actor.optimizer.learning_rate", float("nan"), "got nan: allowed is a finite number"),
        ("train.critic.value_clip", 0, "got 0: allowed is a number above 0, or null"),
        ("sft.enabled", "perhaps", "got 'perhaps': allowed is true or false"),
        ("data.severity", "warn", "got 'warn': allowed is keys with values of 'stop' or 'warn'"),
        ("sft.batch_size", None, "got None: allowed is a whole number of at least 1"),
        ("data.sources", [], "got []: allowed is a list with at least 1 in it"),
        ("data.sources.0.modulus", 1, "got 1: allowed is a whole number from 2 to 1000"),
        (
            "data.sources.0.kind",
            "zip",
            "got 'zip': allowed is 'file', 'hub', 'independent_steps' or 'running_sum'",
        ),
        (
            "data.sources.0.kind",
            KeyError,
            "required key is missing, allowed is 'file', 'hub', 'independent_steps' or 'running_sum'",
        ),
        (
            "data.max_prompt_tokens",
            KeyError,
            "required key is missing, allowed is a whole number of at least 1",
        ),
        ("evaluate.sampling", {"top_p": 0}, "got 0: allowed is a number above 0 and at most 1"),
    ],
)
def test_wrong_value_is_named_once_with_what_it_got_and_what_is_allowed(
    complaint: Callable[[str, Any], list[str]], key: str, value: Any, expected: str
) -> None:
    path = f"{key}.top_p" if key == "evaluate.sampling" else key
    assert complaint(key, value) == [f"{path}: {expected}"]


def test_a_wrong_severity_is_named_by_its_expectation(complaint: Callable[[str, Any], list[str]]) -> None:
    assert complaint("data.severity", {"unique_id": "error", "known_split": "warn"}) == [
        "data.severity.unique_id: got 'error': allowed is 'stop' or 'warn'"
    ]


def test_unknown_key_is_named_with_its_neighbours_and_the_likely_meaning(
    complaint: Callable[[str, Any], list[str]],
) -> None:
    assert complaint("train.gae.lambda_actor", 0.9) == [
        "train.gae.lambda_actor: unknown key, allowed here are fallback, gamma, lam_actor, "
        "lam_critic, length_adaptive_alpha, whiten; did you mean 'lam_actor'?"
    ]


def test_unknown_key_of_a_source_lists_the_keys_of_that_kind(
    complaint: Callable[[str, Any], list[str]],
) -> None:
    (line,) = complaint("data.sources.0.sha256", "0" * 64)
    assert line.startswith("data.sources.0.sha256: unknown key, allowed here are early_stop_fraction, ")
    assert "path" not in line.split("allowed here are ")[1].split(", ")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("train.algorithm", "ppo", "train: algorithm 'ppo' has one lambda, got gae.lam_actor=0.95"),
        ("train.actor.mini_batch_size", 50, "train: actor.mini_batch_size (50) must divide"),
        ("train.reward", {"right": -1.0}, "train: reward.right (-1.0) must exceed reward.wrong (-1.0)"),
        ("evaluate.pass_at", [1, 8], "evaluate: pass_at [8] exceed samples_per_problem (4)"),
        ("data.prompt_template", "solve", "data: prompt_template must contain {problem} exactly once"),
    ],
)
def test_values_that_contradict_each_other_are_both_named(
    complaint: Callable[[str, Any], list[str]], key: str, value: Any, message: str
) -> None:
    (line,) = complaint(key, value)
    assert line.startswith(message)


def test_several_wrong_keys_are_reported_together(complaint: Callable[[str, Any], list[str]]) -> None:
    lines = complaint("sft.optimizer", {"learning_rate": -1, "momentum": 0.9})
    assert [line.split(": ")[0] for line in lines] == [
        "sft.optimizer.learning_rate",
        "sft.optimizer.momentum",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [", "is not valid YAML"), ("- 1", "holds list, expected keys and values"), ("", "holds NoneType")],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        load_config(path)


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no such file.*config use tiny"):
        load_config(tmp_path / "params.yaml")


def test_an_unknown_profile_lists_those_there_are() -> None:
    with pytest.raises(
        ConfigurationError, match="got 'tny', allowed are ablation, independent-steps, one-gpu"
    ):
        load_profile("tny")


def test_the_configuration_cannot_be_changed_in_place() -> None:
    config: Config = load_profile("tiny")
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 2  # type: ignore[misc]


def test_wrong_runtime_variables_are_named_as_they_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCPPO_DEVICE", "tpu")
    monkeypatch.setenv("VCPPO_NUM_NODES", "0")
    with pytest.raises(ConfigurationError) as caught:
        load_runtime()
    assert str(caught.value).splitlines() == [
        "environment: VCPPO_DEVICE: got 'tpu': allowed is 'cpu' or 'cuda'",
        "environment: VCPPO_NUM_NODES: got '0': allowed is a whole number of at least 1",
    ]


def test_runtime_stays_out_of_what_identifies_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_profile("tiny")
    monkeypatch.setenv("VCPPO_NUM_NODES", "4")
    assert load_runtime().num_nodes == 4
    assert load_profile("tiny") == before
