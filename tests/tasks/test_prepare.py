"""Stage prepare, run as DVC runs it: the schema, the bytes, the card, and one clear message for each bad
input."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from tests.tasks.conftest import Workspace

SYNTHETIC = {
    "kind": "running_sum",
    "name": "sums",
    "use": "split",
    "num_problems": 60,
    "eval_count": 10,
    "sft_traces_per_problem": 2,
    "licence": "generated",
}


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"r{i}", "problem": f"What is {i} + 0?", "answer": str(i), **more} for i in range(count)]


def failure(workspace: Workspace, stage: str = "prepare", code: int = 3) -> str:
    """What a failing stage says; it says it in one message, without a traceback, and publishes nothing."""
    done = workspace.run(stage)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    return said


@pytest.fixture(scope="module")
def prepared(lasting_workspace: Workspace) -> Workspace:
    lasting_workspace.configure([SYNTHETIC], prompt_template="Add: {problem}", system_prompt="Be brief.")
    done = lasting_workspace.run("prepare")
    assert done.returncode == 0, done.stderr
    return lasting_workspace


def test_rows_are_as_the_data_page_says(prepared: Workspace) -> None:
    table = pq.read_table(prepared.path / "data/prepared/train.parquet")
    assert table.schema.names == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    row = table.slice(0, 1).to_pylist()[0]
    assert row["data_source"] == "sums"
    assert row["ability"] == "math"
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["prompt"][0]["content"] == "Be brief."
    assert row["prompt"][1]["content"].startswith("Add: ")
    assert row["reward_model"]["style"] == "rule"
    problem = row["prompt"][1]["content"].removeprefix("Add: ")
    assert row["reward_model"]["ground_truth"] == str(sum(map(int, problem[::2])) % 5)
    digest = hashlib.sha256(problem.encode()).hexdigest()[:16]
    assert row["extra_info"] == {
        "id": f"sums/{digest}",
        "split": "train",
        "index": 0,
        "grader": "aime",
        "problem": problem,
        "options": [],
    }
    evaluation = pq.read_table(prepared.path / "data/prepared/eval.parquet").to_pylist()
    assert [row["extra_info"]["index"] for row in evaluation] == list(range(10))
    assert {row["extra_info"]["split"] for row in evaluation} == {"eval"}


def test_sft_traces_belong_to_training_problems_only(prepared: Workspace) -> None:
    sft = pq.read_table(prepared.path / "data/prepared/sft.parquet")
    assert sft.schema.names == ["id", "prompt", "response"]
    train = {
        row["extra_info"]["id"]: row["prompt"]
        for row in pq.read_table(prepared.path / "data/prepared/train.parquet").to_pylist()
    }
    assert sft.num_rows == 2 * len(train) == 100
    for row in sft.to_pylist():
        assert row["prompt"] == train[row["id"]]
        assert row["response"].endswith("}")


def test_card_and_record_tell_what_came_from_where(prepared: Workspace) -> None:
    card = prepared.card()
    (source,) = card["sources"]
    assert (source["rows_in"], source["train_rows"], source["eval_rows"]) == (60, 50, 10)
    assert source["licence"] == "generated"
    for name, file in card["files"].items():
        path = prepared.path / "data/prepared" / name
        assert file["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert file["rows"] == pq.read_metadata(path).num_rows
    record = json.loads((prepared.path / "records/prepare.json").read_text(encoding="utf-8"))
    (artifact,) = [each for each in record["inputs"] if each["kind"] == "source"]
    assert artifact["sha256"] == source["sha256"]
    assert artifact["detail"]["seed"] == 1


def test_the_same_configuration_gives_the_same_bytes(prepared: Workspace) -> None:
    def digests() -> dict[str, str]:
        folder = prepared.path / "data/prepared"
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}

    before = digests()
    assert prepared.run("prepare").returncode == 0
    assert digests() == before
    assert set(before) == {"train.parquet", "eval.parquet", "sft.parquet", "card.json"}


def test_several_sources_are_mixed_and_a_shared_prompt_stays_with_the_benchmark(workspace: Workspace) -> None:
    train = workspace.file_source("pool", rows(20)[::-1], use="train")
    benchmark = workspace.file_source("bench", rows(5), use="eval")
    workspace.configure([train, benchmark])
    assert workspace.run("prepare").returncode == 0
    card = {source["name"]: source for source in workspace.card()["sources"]}
    assert card["bench"]["eval_rows"] == 5
    assert card["pool"]["train_rows"] == 15
    assert card["pool"]["removed"] == {"duplicate_of_other_source": 5}
    assert card["pool"]["listed"][0]["other_source"] == "bench"


def test_solutions_become_traces(workspace: Workspace) -> None:
    source = workspace.file_source(
        "worked", rows(20, solution="Nothing to do."), use="split", eval_count=5, solution_column="solution"
    )
    workspace.configure([source])
    assert workspace.run("prepare").returncode == 0
    assert pq.read_metadata(workspace.path / "data/prepared/sft.parquet").num_rows == 15


def test_duplicates_and_conflicts_are_counted_in_the_card(workspace: Workspace) -> None:
    twice = [*rows(10), {"id": "r0", "problem": "What is 0 + 0?", "answer": "0"}]
    conflict = [{"id": "c", "problem": "Which?", "answer": a} for a in ("1", "2")]
    workspace.configure([workspace.file_source("mine", twice + conflict, use="split", eval_count=2)])
    assert workspace.run("prepare").returncode == 0
    (source,) = workspace.card()["sources"]
    assert source["rows_in"] == 13
    assert source["removed"] == {"conflicting_gold": 2, "duplicate_prompt": 1}
    assert source["listed"][0]["golds"] == ["1", "2"]


def test_the_real_aime_export_of_960_rows_is_30_problems(workspace: Workspace) -> None:
    path = shared_data() / "aime24_dapo_x32.parquet"
    source = workspace.declare(
        path,
        name="aime24",
        use="eval",
        problem_column="extra_info.raw_problem",
        answer_column="reward_model.ground_truth",
        id_column=None,
    )
    workspace.configure([source, {**SYNTHETIC, "use": "train"}])
    done = workspace.run("prepare")
    assert done.returncode == 0, done.stderr
    card = {source["name"]: source for source in workspace.card()["sources"]}
    assert card["aime24"]["rows_in"] == 960
    assert card["aime24"]["eval_rows"] == 30
    assert card["aime24"]["removed"] == {"duplicate_prompt": 930}


def test_real_sources_are_cleaned_against_each_other(workspace: Workspace) -> None:
    data = shared_data()
    workspace.configure(
        [
            workspace.declare(
                data / "dapo17k_sample12.jsonl",
                name="dapo",
                dataset="dapo_math_17k_slime",
                use="train",
                grader="math",
            ),
            workspace.declare(
                data / "gsm8k_test.jsonl",
                name="gsm8k",
                use="split",
                eval_count=200,
                grader="math",
                solution_column="solution",
            ),
            # the same problems as the benchmark below, worded and spaced a little differently
            workspace.declare(
                data / "aime24_dapo_x32.parquet",
                name="leaked",
                use="train",
                problem_column="extra_info.raw_problem",
                answer_column="reward_model.ground_truth",
                id_column=None,
            ),
            workspace.declare(data / "aime24.jsonl", name="aime24", use="eval"),
            workspace.declare(data / "aime25.jsonl", name="aime25", use="eval"),
        ]
    )
    done = workspace.run("prepare")
    assert done.returncode == 0, done.stderr
    card = {source["name"]: source for source in workspace.card()["sources"]}
    assert card["dapo"]["removed"] == {"near_duplicate": 1}
    assert card["dapo"]["licence"] == "Apache-2.0"
    assert card["dapo"]["problem_characters"]["max"] < 400
    assert (card["aime24"]["eval_rows"], card["aime25"]["eval_rows"]) == (30, 30)
    # one is worded so differently that it shares two fifths of its eight-word shingles only
    assert card["leaked"]["train_rows"] <= 1
    pairs = [entry for entry in card["leaked"]["listed"] if entry["reason"] == "benchmark_overlap"]
    assert len(pairs) > 20
    assert all(entry["benchmark_id"].startswith("aime24/") for entry in pairs)
    assert card["gsm8k"]["eval_rows"] == 200
    sft = pq.read_table(workspace.path / "data/prepared/sft.parquet").column("response").to_pylist()
    assert len(sft) == card["gsm8k"]["train_rows"] > 1100
    assert not [response for response in sft if "<<" in response or "####" in response]
    assert all(response.count("\\boxed{") == 1 for response in sft)


def shared_data() -> Path:
    root = os.environ.get("VCPPO_SHARED")
    folder = (Path(root) if root else Path(__file__).resolve().parents[2].parent / "shared") / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder}: real data sets are not here (set VCPPO_SHARED)")
    return folder


def test_a_missing_source_file_is_named(workspace: Workspace) -> None:
    source = workspace.file_source("mine", rows(5), use="split", eval_count=1)
    (workspace.path / "mine.jsonl").unlink()
    workspace.configure([source])
    said = failure(workspace)
    assert "mine.jsonl: source mine: there is no such file" in said


def test_a_failure_leaves_the_earlier_output_whole(workspace: Workspace) -> None:
    earlier = workspace.path / "data/prepared/train.parquet"
    earlier.parent.mkdir(parents=True)
    earlier.write_bytes(b"as it was")
    workspace.configure([workspace.file_source("mine", '{"id": "x"}\n{"id"', use="eval"), SYNTHETIC])
    assert "mine.jsonl: row 1: has no column 'problem'" in failure(workspace)
    assert earlier.read_bytes() == b"as it was"
    assert [path.name for path in (workspace.path / "data").iterdir()] == ["prepared"]


def test_a_gold_that_the_grader_cannot_read_is_named(workspace: Workspace) -> None:
    bad = [*rows(5), {"id": "bad", "problem": "Why?", "answer": "because"}]
    workspace.configure([workspace.file_source("mine", bad, use="split", eval_count=1)])
    said = failure(workspace)
    assert "mine.jsonl: row 6:" in said
    assert "because" in said


def test_an_empty_benchmark_is_named_even_beside_another(workspace: Workspace) -> None:
    workspace.configure([workspace.file_source("mine", "", use="eval"), SYNTHETIC])
    assert "source mine: is empty" in failure(workspace)


def test_a_gated_benchmark_without_a_token_is_named(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    gpqa = {"kind": "hub", "name": "gpqa", "dataset": "gpqa", "revision": "0" * 40, "use": "eval"}
    workspace.configure([{**gpqa, "grader": "gpqa"}, SYNTHETIC])
    assert "Idavidrein/gpqa is gated" in failure(workspace)


def test_only_conflicts_leave_nothing_and_the_message_counts_them(workspace: Workspace) -> None:
    conflict = [{"id": "c", "problem": "Which?", "answer": a} for a in ("1", "2")]
    workspace.configure([workspace.file_source("mine", conflict, use="train"), {**SYNTHETIC, "use": "eval"}])
    assert "2 rows, 2 conflicting_gold" in failure(workspace)


def test_without_anything_to_evaluate_on_the_message_says_how_to_get_it(workspace: Workspace) -> None:
    workspace.configure([workspace.file_source("mine", rows(5), use="train")])
    assert "no problem is left to evaluate on" in failure(workspace)


def test_no_permission_to_write_is_a_storage_error(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.configure([SYNTHETIC])
    # a place where nobody, not even root, may make a directory
    monkeypatch.setenv("VCPPO_STORAGE_DIR", "/sys/kernel/vcppo")
    assert "/sys/kernel/vcppo: no permission" in failure(workspace, code=6)
    assert not (workspace.path / "data").exists()


def test_a_source_of_many_kinds_of_row_group_is_read_whole(workspace: Workspace) -> None:
    table = pa.Table.from_pylist(rows(40))
    path = workspace.path / "mine.parquet"
    pq.write_table(table, path, row_group_size=7)
    workspace.configure([workspace.declare(path, use="split", eval_count=10)])
    assert workspace.run("prepare").returncode == 0
    (source,) = workspace.card()["sources"]
    assert (source["train_rows"], source["eval_rows"]) == (30, 10)
