"""Configuration files that are no good YAML, or wrong in a section that may be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from vcppo.config import load_config
from vcppo.config.load import UniqueKeyLoader
from vcppo.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]


def test_a_key_that_stands_twice_is_named_with_its_lines(tmp_path: Path) -> None:
    text = (ROOT / "profiles" / "tiny.yaml").read_text(encoding="utf-8")
    (tmp_path / "params.yaml").write_text(f"seed: 7\n{text}", encoding="utf-8")
    line = 2 + text.splitlines().index("seed: 1")
    with pytest.raises(ConfigurationError, match=f"key 'seed' stands twice, in lines 1 and {line}; mend it"):
        load_config(tmp_path / "params.yaml")


@pytest.mark.parametrize(
    "text", ["seed: 2024-13-45", "seed: !!int foo", "seed: !!bool foo", f"seed: {'9' * 5000}"]
)
def test_a_value_that_yaml_chokes_on_is_no_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"params\.yaml: is not valid YAML: .*; mend it there"):
        load_config(tmp_path / "params.yaml")


def test_merge_keys_merge_and_do_not_count_as_twice(tmp_path: Path) -> None:
    text = "base: &base {a: 1, b: 2}\nboth: {<<: *base, b: 3}\n"
    assert yaml.load(text, UniqueKeyLoader)["both"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "train.stopping.step_tokens",
            0,
            "got 0: allowed is a whole number of at least 1",
        ),
        (
            "train.stopping.step_token",
            4,
            "unknown key, allowed here are answer_token, num_",
        ),
        (
            "ablation.rows.6.num_seeds",
            0,
            "got 0: allowed is a whole number of at least 1",
        ),
        (
            "ablation.rows.6.num_seed",
            2,
            "unknown key, allowed here are changes, label, name",
        ),
        (
            "ablation.rows.6.changes",
            {"gae.lam_actor": True},
            "ablation row pretraining_0.25: train.gae.lam_actor: got True: allowed is a number from 0 to 1",
        ),
        (
            "ablation.rows.6.changes",
            {"critic_start": "sft"},
            "ablation row pretraining_0.25: changes: train.critic_start is set by the study; choose with",
        ),
        (
            "ablation.evaluate_steps",
            [100],
            "got 100, allowed are at most 24, the steps of",
        ),
    ],
)
def test_wrong_values_of_optional_sections_are_named_as_precisely(
    tmp_path: Path, key: str, value: Any, expected: str
) -> None:
    values = yaml.safe_load((ROOT / "profiles" / "ablation.yaml").read_text(encoding="utf-8"))
    *path, last = key.split(".")
    section = values
    for part in path:
        section = section[int(part) if part.isdecimal() else part]
    section[last] = value
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(tmp_path / "params.yaml")
    assert expected in str(caught.value) and (key in str(caught.value) or "ablation row" in expected)
