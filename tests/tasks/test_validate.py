"""Stage validate: good data passes with every expectation counted; each defect stops it with the rows
named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tasks.expectations.runner import MAX_ROWS_NAMED, Finding, run_suites
from tasks.expectations.suites import STOP, WARN, problem_expectations, trace_expectations
from tasks.expectations.view import gold_state, prompt_tokens
from tasks.validate import judge, summary
from training.models import load_tokenizer
from vcppo.config import DataConfig, TinyModel, load_profile
from vcppo.errors import DataError

if TYPE_CHECKING:
    from tests.tasks.conftest import Workspace

DATA: DataConfig = load_profile("tiny").data


def problems(count: int = 30) -> pd.DataFrame:
    """A flat view in which everything holds."""
    return pd.DataFrame(
        {
            "id": [f"running_sum/{i}" for i in range(count)],
            "split": ["train"] * (count - 5) + ["eval"] * 5,
            "source": ["running_sum"] * count,
            "grader": ["aime"] * count,
            "prompt_sha256": [f"{i:064x}" for i in range(count)],
            "prompt_tokens": [45] * count,
            "gold": [str(i) for i in range(count)],
            "gold_state": ["canonical"] * count,
        }
    )


def check(frame: pd.DataFrame, docs: Path) -> list[Finding]:
    return run_suites({"problems": (frame, problem_expectations(DATA))}, docs)


def failed(frame: pd.DataFrame, docs: Path) -> list[Finding]:
    return [finding for finding in check(frame, docs) if finding.outcome != "passed"]


def test_sound_data_passes_and_every_expectation_is_counted(tmp_path: Path) -> None:
    findings = check(problems(), tmp_path)
    assert {finding.outcome for finding in findings} == {"passed"}
    assert len(findings) == len(problem_expectations(DATA))
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize(
    ("column", "row", "value", "expectation"),
    [
        ("id", 3, "running_sum/4", "expect_column_values_to_be_unique"),
        ("prompt_sha256", 3, f"{4:064x}", "expect_column_values_to_be_unique"),
        ("prompt_tokens", 3, 49, "expect_column_values_to_be_between"),
        ("gold", 3, None, "expect_column_values_to_not_be_null"),
        ("gold", 3, "007", "expect_column_values_to_match_regex"),
        ("gold", 3, "1000", "expect_column_values_to_match_regex"),
        ("gold_state", 3, "unreadable: many", "expect_column_values_to_be_in_set"),
        ("source", 3, "elsewhere", "expect_column_values_to_be_in_set"),
    ],
)
def test_a_defect_is_found_and_its_row_named(
    tmp_path: Path, column: str, row: int, value: Any, expectation: str
) -> None:
    frame = problems()
    frame.loc[row, column] = value
    (finding,) = failed(frame, tmp_path)
    assert finding.expectation.startswith(expectation)
    assert f"column='{column}'" in finding.expectation
    named = " ".join(finding.rows)
    assert ("running_sum/4" if column == "id" else "running_sum/3") in named
    with pytest.raises(DataError, match="running_sum/"):
        judge([finding], 1, tmp_path)


def test_at_most_twenty_rows_are_named_and_all_are_counted(tmp_path: Path) -> None:
    frame = problems(200)
    frame["prompt_tokens"] = 1000
    (finding,) = failed(frame, tmp_path)
    assert len(finding.rows) == MAX_ROWS_NAMED == 20
    assert finding.unexpected == 200
    assert finding.rows[0] == "running_sum/0 (1000)"


def test_data_without_an_evaluation_split_fails(tmp_path: Path) -> None:
    frame = problems()
    frame["split"] = "train"
    (finding,) = failed(frame, tmp_path)
    assert "missing ['eval']" in finding.detail


def test_a_check_that_raises_is_told_apart_from_bad_data(tmp_path: Path) -> None:
    findings = check(problems().drop(columns="prompt_tokens"), tmp_path)
    raised = [finding for finding in findings if finding.outcome == "raised"]
    assert raised
    assert all("prompt_tokens" in finding.line() for finding in raised)
    with pytest.raises(DataError, match="checks broke, which says nothing about the data"):
        judge(findings, len(findings), tmp_path)


def test_an_expectation_that_got_lost_fails_the_validation(tmp_path: Path) -> None:
    findings = check(problems(), tmp_path)
    with pytest.raises(DataError, match=f"only {len(findings) - 1} of {len(findings)} expectations ran"):
        judge(findings[1:], len(findings), tmp_path)


def test_a_trace_over_the_limit_warns_and_an_orphan_stops(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["s/a", "s/b"], "problem": ["known", "unknown"], "response_tokens": [5, 113]})
    findings = run_suites({"sft_traces": (frame, trace_expectations(DATA))}, tmp_path)
    by_severity = {finding.severity: finding for finding in findings if finding.outcome == "failed"}
    assert by_severity[WARN].rows == ("s/b (113)",)
    assert by_severity[STOP].rows == ("s/b ('unknown')",)
    counts = summary(findings, len(findings))
    assert (counts["failed_stop"], counts["failed_warn"]) == (1, 1)


def test_an_empty_table_of_traces_is_no_fault(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [], "problem": [], "response_tokens": []})
    findings = run_suites({"sft_traces": (frame, trace_expectations(DATA))}, tmp_path)
    assert {finding.outcome for finding in findings} == {"passed"}


@pytest.mark.parametrize(
    ("gold", "state"), [("42", "canonical"), ("042", "should be 42"), ("many", "unreadable: ")]
)
def test_the_state_of_a_gold_answer_says_what_the_grader_thinks(gold: str, state: str) -> None:
    assert gold_state(gold, "aime").startswith(state)


def test_prompt_length_counts_the_chat_template() -> None:
    tokenizer = load_tokenizer(TinyModel())
    prompts = [[{"role": "user", "content": "3a9b"}], [{"role": "user", "content": "3a9b4c"}]]
    lengths = prompt_tokens(prompts, tokenizer)
    assert lengths == [
        len(tokenizer.apply_chat_template(p, add_generation_prompt=True, return_dict=False)) for p in prompts
    ]
    assert lengths[1] - lengths[0] == 2
    assert lengths[0] > 4


@pytest.mark.slow
def test_the_stage_stops_at_a_prompt_over_the_limit_and_publishes_nothing(workspace: Workspace) -> None:
    source = {
        "kind": "running_sum",
        "name": "sums",
        "use": "split",
        "num_problems": 40,
        "eval_count": 10,
    }
    workspace.configure([source], max_prompt_tokens=44)
    assert workspace.run("prepare").returncode == 0
    done = workspace.run("validate")
    said = done.stdout + done.stderr
    assert done.returncode == 3, said
    assert "1 of " in said
    assert "prompt_tokens" in said
    assert "40 rows: sums/" in said
    assert "(45)" in said
    assert "Traceback" not in said
    assert not (workspace.path / "metrics").exists()
    assert not (workspace.path / "data/validation").exists()
    (result,) = (workspace.path / "work/validate").glob("*/out/metrics/validate.json")
    assert json.loads(result.read_text(encoding="utf-8"))["failed_stop"] == 1
