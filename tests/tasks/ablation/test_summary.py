"""Means, differences and findings of a made-up study against values computed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tasks.ablation.results import Study, read_study
from tasks.ablation.summary import plot_rows, seed_means, summarise
from tasks.ablation.text import plus_minus, verdict, with_runs
from tests.tasks.ablation.made_up_study import ABLATION, FINAL, write_config, write_study
from vcppo.config import Config
from vcppo.errors import DataError

T_2 = 4.302653
"""Student's t, 95 %, 2 degrees of freedom."""
MINUS = "\N{MINUS SIGN}"


def load(path: Path, *args: Any, ablation: Any = ABLATION, **more: Any) -> tuple[Study, Config]:
    config = write_config(path, ablation)
    write_study(path / "data", *args, **more)
    assert config.ablation is not None
    return read_study(path / "data", config.ablation), config


def holds(summary: dict[str, Any]) -> list[bool | None]:
    return [finding["holds"] for finding in summary["findings"]]


def test_a_row_is_the_mean_over_its_seeds_with_a_t_interval(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    row = summarise(study, config)["rows"]["vc_ppo"]
    half = T_2 * 0.01 / math.sqrt(3)
    assert row["accuracy"] == pytest.approx({"mean": 0.94, "low": 0.94 - half, "high": 0.94 + half, "n": 3})
    assert row["accuracy_at"]["4"]["mean"] == pytest.approx(0.89)
    assert row["accuracy_at"]["8"] == row["accuracy"]
    assert row["length"]["mean"] == pytest.approx(81.0)
    assert row["length"]["high"] - 81.0 == pytest.approx(T_2 * 1 / math.sqrt(3), rel=1e-6)
    assert row["value_bias"]["first"]["mean"] == pytest.approx(-0.02)
    assert row["stopping_advantage"]["last"]["mean"] == pytest.approx(-1.0)
    assert row["seconds"] == 93.0
    assert (row["num_runs"], row["num_stopped"], row["guard_warnings"]) == (3, 0, {})


def test_the_first_step_at_which_the_seeds_are_solved_is_that_of_their_mean(tmp_path: Path) -> None:
    # 0.55 + 0.4 (step - 1) / 7 is 0.893 at step 7, when the third seed alone is above 0.9; 0.95 at step 8
    study, config = load(tmp_path)
    rows = summarise(study, config)["rows"]
    assert rows["vc_ppo"]["first_step_reached"] == 8
    assert rows["ppo"]["first_step_reached"] is None
    means = seed_means(study.of("vc_ppo"), "response/accuracy")
    assert means[7]["mean"] == pytest.approx(0.55 + 0.4 * 6 / 7)


def test_a_stopped_run_counts_with_its_last_good_checkpoint_at_the_end_and_not_where_it_never_came(
    tmp_path: Path,
) -> None:
    study, config = load(tmp_path)
    row = summarise(study, config)["rows"]["ppo"]
    assert row["accuracy"]["n"] == 3
    assert row["accuracy"]["mean"] == pytest.approx((0.10 + 0.14 + 0.07) / 3)
    assert row["accuracy_at"]["8"]["n"] == 2
    assert row["accuracy_at"]["4"]["n"] == 3
    assert row["stopped_by"] == {"length_collapse": 1}
    assert row["guard_warnings"] == {"length_collapse": {"runs": 3, "first_step": 5}}
    (stopped,) = [run for run in study.runs if run.stopped]
    assert stopped.steps[-1]["step"] == 6
    # the last steps are 8, 8 and 6: bias 0 twice, -1.2 * 2 / 7 once, and the shifts -0.01, 0, 0.01
    assert row["value_bias"]["last"]["mean"] == pytest.approx(-1.2 * 2 / 7 / 3)


def test_a_row_without_a_critic_has_no_value_bias_and_a_task_without_steps_no_stopping(
    tmp_path: Path,
) -> None:
    study, config = load(tmp_path, stopping=False)
    rows = summarise(study, config)["rows"]
    assert rows["grpo"]["value_bias"] == {"first": None, "last": None}
    assert rows["grpo"]["entropy"]["first"]["mean"] == pytest.approx(0.4)
    assert rows["vc_ppo"]["stopping_hazard"] == {"first": None, "last": None}


def test_comparisons_are_paired_by_seed(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    _, against_grpo = summarise(study, config)["comparisons"]
    # differences 0.07, 0.05, 0.00: mean 0.04, deviation sqrt(0.0013)
    half = T_2 * math.sqrt(0.0013) / math.sqrt(3)
    expected = {"mean": 0.04, "low": 0.04 - half, "high": 0.04 + half, "n": 3}
    assert against_grpo["end"] == pytest.approx(expected)
    assert against_grpo["at"]["4"] == pytest.approx(expected)
    assert list(against_grpo["at"]) == ["4", "8"]


def test_only_seeds_that_both_rows_have_are_paired(tmp_path: Path) -> None:
    study, config = load(tmp_path, {**FINAL, "grpo": (0.86,)})
    _, against_grpo = summarise(study, config)["comparisons"]
    assert against_grpo["end"]["n"] == 1
    assert against_grpo["end"]["mean"] == pytest.approx(0.07)
    assert against_grpo["end"]["low"] is None
    assert holds(summarise(study, config))[-1] is None


def test_a_study_that_agrees_with_the_paper_finds_so(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    summary = summarise(study, config)
    # vc_ppo against grpo lies within chance
    assert holds(summary) == [True] * 10 + [False] * 2
    evidence = [finding["evidence"] for finding in summary["findings"]]
    assert evidence[0].endswith("(3 runs), SFT policy 0.550")
    assert evidence[3].startswith("mean training accuracy of 0.9 or more from step 8; held-out 0.890")
    assert (
        evidence[4]
        == "advantage of stopping minus that of going on +1.300 \N{PLUS-MINUS SIGN} 0.025 (3 runs)"
    )
    assert "within what chance gives" in evidence[-1]


def test_arms_that_differ_early_and_meet_at_the_end_are_two_findings(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    for run in study.runs:
        if run.row == "grpo":
            run.evaluations[4]["average_at_k"] = 0.5 + 0.01 * run.seed_index
    early, end = summarise(study, config)["findings"][-2:]
    assert (early["claim"], early["holds"]) == ("At step 4 VC-PPO (0.95 / 1.0) is above GRPO.", True)
    assert (end["claim"], end["holds"]) == ("VC-PPO (0.95 / 1.0) ends above GRPO.", False)


def test_rows_that_are_the_same_run_so_far_give_no_finding(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    for run, other in zip(study.of("grpo"), study.of("vc_ppo"), strict=True):
        run.evaluations[4]["average_at_k"] = other.evaluations[4]["average_at_k"]
    claims = [finding["claim"] for finding in summarise(study, config)["findings"]]
    assert "VC-PPO (0.95 / 1.0) ends above GRPO." in claims
    assert "At step 4 VC-PPO (0.95 / 1.0) is above GRPO." not in claims


def test_a_study_that_disagrees_says_so_claim_by_claim(tmp_path: Path) -> None:
    # the names swapped: what is called PPO learns, what is called VC-PPO collapses
    study, config = load(tmp_path)
    swapped = {"ppo": "vc_ppo", "vc_ppo": "ppo"}
    runs = [type(r)(**{**vars(r), "row": swapped.get(r.row, r.row)}) for r in study.runs]
    summary = summarise(Study(study.benchmark, study.base, study.critics, runs), config)
    assert holds(summary) == [False] * 12
    assert "0.9 or more never" in summary["findings"][3]["evidence"]
    assert "below 0, beyond chance: against what was expected" in summary["findings"][-3]["evidence"]


def test_a_study_without_those_rows_has_only_the_findings_of_its_comparisons(tmp_path: Path) -> None:
    ablation = {
        "rows": [row for row in ABLATION["rows"] if row["name"] in ("vc_ppo", "lam_actor_1")],
        "tables": ABLATION["tables"][1:],
        "comparisons": [{"better": "vc_ppo", "worse": "lam_actor_1"}],
    }
    final = {name: FINAL[name] for name in ("vc_ppo", "lam_actor_1")}
    study, config = load(tmp_path, final, ablation=ablation, stopped=None)
    summary = summarise(study, config)
    assert [finding["claim"] for finding in summary["findings"]] == [
        "At step 4 VC-PPO (0.95 / 1.0) is above lambda_actor 1.0.",
        "VC-PPO (0.95 / 1.0) ends above lambda_actor 1.0.",
    ]


def test_a_row_whose_runs_are_missing_leaves_its_claims_open(tmp_path: Path) -> None:
    study, config = load(tmp_path, {"ppo": FINAL["ppo"]})
    summary = summarise(study, config)
    assert summary["rows"]["vc_ppo"]["accuracy"] is None
    assert holds(summary) == [True, True, None, None, True, None, True, None, None, None]


def test_the_table_for_plots_has_the_means_of_the_runs_that_are_left(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    rows = list(plot_rows(study, config))
    assert len(rows) == 4 * 8
    (last,) = [row for row in rows if (row["row"], row["step"]) == ("ppo", 8)]
    assert last["num_runs"] == 2
    assert last["accuracy"] == pytest.approx(0.12 - 0.005)
    (first,) = [row for row in rows if (row["row"], row["step"]) == ("grpo", 1)]
    assert "value_bias" not in first and first["num_runs"] == 3


def test_the_summary_is_json(tmp_path: Path) -> None:
    study, config = load(tmp_path)
    assert json.loads(json.dumps(summarise(study, config), allow_nan=False))["benchmark"] == "running_sum"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("base.json", "{}", r"base\.json: holds no evaluation"),
        ("runs.json", "[]", r"runs\.json: holds no run"),
        ("runs.json", "{}", r"runs\.json: holds dict, expected a list"),
        ("critics.json", "[", r"critics\.json: is no readable JSON file"),
        ("metrics/ppo/0.jsonl", "", r"0\.jsonl: holds no step, 8 were trained"),
        ("metrics/ppo/0.jsonl", "{", r"0\.jsonl:1: is no JSON object"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    config = write_config(tmp_path)
    write_study(tmp_path / "data")
    (tmp_path / "data" / name).write_text(content, encoding="utf-8")
    assert config.ablation is not None
    with pytest.raises(DataError, match=message):
        read_study(tmp_path / "data", config.ablation)


def test_runs_of_a_row_that_is_not_configured_are_refused(tmp_path: Path) -> None:
    ablation = {"rows": ABLATION["rows"][:2], "tables": [{"title": "t", "rows": ["ppo"]}]}
    with pytest.raises(DataError, match=r"row 'vc_ppo', rows of the configuration are grpo, ppo"):
        load(tmp_path, ablation=ablation)


def test_means_as_text() -> None:
    mean = {"mean": -0.01234, "low": -0.01694, "high": -0.00774, "n": 5}
    assert plus_minus(mean, sign=True) == f"{MINUS}0.0123 \N{PLUS-MINUS SIGN} 0.0046"
    assert with_runs({"mean": 0.5, "low": None, "high": None, "n": 1}, sign=True) == "+0.500 (1 run)"
    assert plus_minus({"mean": 1234.5, "low": 1200.0, "high": 1269.0, "n": 2}) == (
        "1,234 \N{PLUS-MINUS SIGN} 34"
    )
    assert plus_minus({"mean": 0.0, "low": 0.0, "high": 0.0, "n": 2}) == "0.000 \N{PLUS-MINUS SIGN} 0.000"
    assert plus_minus(None) == "\N{EN DASH}"
    assert verdict({"mean": 0.1, "low": 0.01, "high": 0.19, "n": 3}) == "above 0, beyond chance"
