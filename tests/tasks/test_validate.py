"""Stage validate: good data passes, every expectation counted; each defect stops it with its rows named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

from tasks.expectations.runner import MAX_ROWS_NAMED, Finding, run_suites
from tasks.expectations.suites import STOP, WARN, suites
from tasks.expectations.view import FREE_TEXT, PROBLEM_COLUMNS, parts_view, problems_view
from tasks.sources.assembly import Placed
from tasks.sources.cleaning import Gold
from tasks.sources.problem import Problem
from tasks.sources.tables import sft_table, verl_table, write_parquet
from tasks.validate import judge, summary
from training.models import load_tokenizer
from vcppo.config import DataConfig, TinyModel, load_profile
from vcppo.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from tests.tasks.conftest import Workspace

DATA: DataConfig = load_profile("tiny").data


def problems(count: int = 30) -> pd.DataFrame:
    """A flat view in which everything holds."""
    same: dict[str, Any] = {
        "source": "running_sum",
        "grader": "aime",
        "prompt_tokens": 45,
        "lost_characters": "none",
        "gold_state": "canonical",
        "gold_grade": "right",
        "other_grade": "wrong",
        "golds_of_prompt": 1,
        "language": "en",
        "template": "once",
        "answer_inside": "none",
        "figure": "none",
        "options": "no choice",
        "overlap": "none",
    }
    frame = pd.DataFrame({name: [value] * count for name, value in same.items()})
    frame["id"] = [f"running_sum/{i}" for i in range(count)]
    frame["split"] = ["train"] * (count - 5) + ["eval"] * 5
    frame["prompt_sha256"] = [f"{i:064x}" for i in range(count)]
    frame["gold"] = [str(i) for i in range(count)]
    return frame[list(PROBLEM_COLUMNS)]


def check(frame: pd.DataFrame, docs: Path, view: str = "problems", data: DataConfig = DATA) -> list[Finding]:
    return run_suites({view: (frame, suites(data)[view])}, docs)


def failed(frame: pd.DataFrame, docs: Path, view: str = "problems", data: DataConfig = DATA) -> list[Finding]:
    return [finding for finding in check(frame, docs, view, data) if finding.outcome != "passed"]


def test_sound_data_passes_and_every_expectation_is_counted(tmp_path: Path) -> None:
    findings = check(problems(), tmp_path)
    assert {finding.outcome for finding in findings} == {"passed"}
    assert len(findings) == len(suites(DATA)["problems"])
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize(
    ("column", "value", "name"),
    [
        ("id", "running_sum/4", "unique_id"),
        ("prompt_sha256", f"{4:064x}", "unique_prompt"),
        ("prompt_tokens", 49, "prompt_within_limit"),
        ("lost_characters", "€", "no_lost_characters"),
        ("gold", None, "gold_not_null"),
        ("gold", "007", "aime_gold_0_to_999"),
        ("gold", "1000", "aime_gold_0_to_999"),
        ("gold_state", "unreadable: many", "gold_canonical"),
        ("gold_grade", "grader_error", "gold_graded_right"),
        ("other_grade", "right", "gold_plus_one_graded_wrong"),
        ("golds_of_prompt", 2, "one_gold_per_prompt"),
        ("source", "elsewhere", "known_source"),
        ("split", "test", "known_split"),
        ("template", "repeated", "template_once"),
        ("answer_inside", "\\boxed", "no_answer_in_prompt"),
        ("figure", "[asy]", "no_figure_in_training"),
        ("overlap", "aime24/3", "no_benchmark_overlap"),
        ("options", "4 options, 3 distinct", "four_distinct_options"),
        ("language", "zh", "expected_language"),
    ],
)
def test_a_defect_is_found_and_its_row_named(tmp_path: Path, column: str, value: Any, name: str) -> None:
    frame = problems()
    frame.loc[3, column] = value
    (finding,) = failed(frame, tmp_path)
    assert finding.name == name
    assert f"column='{column}'" in finding.expectation
    assert ("running_sum/4" if column == "id" else "running_sum/3") in " ".join(finding.rows)
    assert finding.severity == (WARN if name == "expected_language" else STOP)


def test_words_kept_as_categories_are_checked_like_text(tmp_path: Path) -> None:
    frame = problems()
    for row, (column, value) in enumerate((("gold", "1000"), ("figure", "[asy]"), ("split", "test")), 3):
        frame.loc[row, column] = value
    few = [name for name in PROBLEM_COLUMNS if name not in (*FREE_TEXT, "prompt_tokens", "golds_of_prompt")]
    found = failed(frame.astype(dict.fromkeys(few, "category")), tmp_path)
    assert found == failed(frame, tmp_path)
    assert [finding.name for finding in found] == [
        "known_split", "aime_gold_0_to_999", "no_figure_in_training",
    ]  # fmt: skip


def test_at_most_twenty_rows_are_named_and_all_are_counted(tmp_path: Path) -> None:
    frame = problems(200)
    frame["prompt_tokens"] = 1000
    (finding,) = failed(frame, tmp_path)
    assert len(finding.rows) == MAX_ROWS_NAMED == 20
    assert finding.unexpected == 200
    assert finding.rows[0] == "running_sum/0 (1000)"
    with pytest.raises(
        DataError, match=r"1 of 1 expectations fail:\n.*prompt_within_limit.*running_sum/0 \(1000\)"
    ):
        judge([finding], 1, tmp_path)


def test_a_check_that_raises_is_told_apart_from_bad_data(tmp_path: Path) -> None:
    findings = check(problems().drop(columns="prompt_tokens"), tmp_path)
    raised = [finding for finding in findings if finding.outcome == "raised"]
    assert raised
    assert all("prompt_tokens" in finding.line() for finding in raised)
    assert [finding.name for finding in findings if finding.outcome == "failed"] == ["schema"]
    with pytest.raises(DataError, match="checks broke, which says nothing about the data"):
        judge(findings, len(findings), tmp_path)


def test_an_expectation_that_got_lost_fails_the_validation(tmp_path: Path) -> None:
    findings = check(problems(), tmp_path)
    with pytest.raises(DataError, match=f"only {len(findings) - 1} of {len(findings)} expectations ran"):
        judge(findings[1:], len(findings), tmp_path)


def test_severity_is_the_configurations_to_change(tmp_path: Path) -> None:
    data = DATA.model_copy(update={"severity": {"unique_id": "warn", "expected_language": "stop"}})
    frame = problems()
    frame.loc[3, "id"] = "running_sum/4"
    frame.loc[5, "language"] = "zh"
    severities = {finding.name: finding.severity for finding in failed(frame, tmp_path, data=data)}
    assert severities == {"unique_id": WARN, "expected_language": STOP}
    wrong = DATA.model_copy(update={"severity": {"unique_ids": "warn"}})
    with pytest.raises(
        ConfigurationError, match=r"data\.severity: got unique_ids; expectations are .*unique_id"
    ):
        suites(wrong)


def test_a_trace_over_the_limit_warns_and_an_orphan_stops(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["s/a", "s/b"], "problem": ["known", "unknown"], "response_tokens": [5, 113]})
    findings = check(frame, tmp_path, "traces")
    by_severity = {finding.severity: finding for finding in findings if finding.outcome == "failed"}
    assert by_severity[WARN].rows == ("s/b (113)",)
    assert by_severity[STOP].rows == ("s/b ('unknown')",)
    counts = summary(findings, len(findings))
    assert (counts["failed_stop"], counts["failed_warn"]) == (1, 1)


def test_an_empty_table_of_traces_is_no_fault(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [], "problem": [], "response_tokens": []})
    assert failed(frame, tmp_path, "traces") == []


def test_too_few_problems_and_an_empty_source_are_found(tmp_path: Path) -> None:
    data = DATA.model_copy(update={"min_train_problems": 100})
    frame = problems()
    frame["split"] = "train"
    findings = {finding.name: finding for finding in failed(parts_view(frame, data), tmp_path, "parts", data)}
    assert findings["train_problems_within_bounds"].rows == ("train (30)",)
    assert findings["no_source_or_split_empty"].rows == ("eval (0)",)


def test_a_row_without_its_text_is_told_by_its_column(tmp_path: Path) -> None:
    pool = DATA.sources[0]
    placed: list[Placed] = [(pool, Gold(Problem("pool/1", "1+1", "2", ""), "2"))]
    table = verl_table(placed, "train", DATA)
    for split in ("train", "eval"):
        write_parquet(table, tmp_path / f"{split}.parquet")
    write_parquet(sft_table([], DATA), tmp_path / "sft.parquet")
    (row,) = table.to_pylist()
    row["extra_info"]["problem"] = None
    write_parquet(pa.Table.from_pylist([row], table.schema), tmp_path / "train.parquet")
    with pytest.raises(DataError, match=r"train\.parquet: rows without a value in extra_info\.problem"):
        problems_view(tmp_path, DATA, load_tokenizer(TinyModel()))


def test_the_view_sees_what_prepared_files_hold(tmp_path: Path) -> None:
    data = DataConfig.model_validate(
        {
            "sources": [
                {"kind": "running_sum", "name": "pool", "num_problems": 1, "use": "train"},
                {"kind": "running_sum", "name": "choice", "num_problems": 1, "use": "eval", "grader": "gpqa"},
            ],
            "prompt_template": "Answer: {problem}",
            "max_prompt_tokens": 500,
            "max_response_tokens": 500,
        }
    )
    pool, choice = data.sources
    long = "How many integers from one to one hundred are divisible by three but not by five"
    train: list[Placed] = [
        (pool, Gold(Problem("pool/1", long + "?", "27", "", ("As shown.",)), "27")),
        (pool, Gold(Problem("pool/2", "In the diagram, find x in €.", "1", ""), "1")),
        (pool, Gold(Problem("pool/3", "In the  diagram, find x in €.", "2", ""), "2")),
    ]
    options = ("w", "x", "y", "z")
    evaluation: list[Placed] = [
        (choice, Gold(Problem("choice/1", long + ", say?", "B", "", (), options), "B"))
    ]
    write_parquet(verl_table(train, "train", data), tmp_path / "train.parquet")
    write_parquet(verl_table(evaluation, "eval", data), tmp_path / "eval.parquet")
    write_parquet(sft_table(train, data), tmp_path / "sft.parquet")
    tokenizer = load_tokenizer(TinyModel())
    view = problems_view(tmp_path, data, tokenizer).set_index("id")
    # as with millions of rows: in workers, and with bounds where they suffice
    large = problems_view(tmp_path, data, tokenizer, small=0).set_index("id")
    assert (large.pop("prompt_tokens") >= view["prompt_tokens"]).all()
    pd.testing.assert_frame_equal(large, view.drop(columns="prompt_tokens"))
    assert list(view["template"]) == ["once"] * 4
    assert view.loc["pool/1", "overlap"] == "choice/1"
    assert view.loc["pool/2", "figure"] == "In the diagram"
    assert list(view["lost_characters"]) == ["none", "€", "€", "none"]
    assert list(view["golds_of_prompt"]) == [1, 2, 2, 1]
    assert view.loc["choice/1", "options"] == "four distinct"
    assert list(view["gold_state"]) == ["canonical"] * 4
    assert list(view["gold_grade"]) == ["right"] * 4
    assert list(view["other_grade"]) == ["wrong"] * 4


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
