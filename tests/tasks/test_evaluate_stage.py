"""The evaluate stage for real: on a server, in process, killed and gone on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.tasks.conftest import Workspace
from tests.training.generation.chat_server import Server, completion
from tests.training.generation.conftest import save_tiny_policy

TRAINING = {
    "kind": "running_sum", "name": "sums", "use": "train", "num_problems": 8, "num_digits": 4,
}  # fmt: skip


def configure(workspace: Workspace, sources: Sequence[Mapping[str, Any]], **evaluate: Any) -> None:
    workspace.configure([TRAINING, *sources], max_prompt_tokens=160, max_response_tokens=24)
    path = workspace.path / "params.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["evaluate"] = {"pass_at": [1], "problems_per_shard": 4, **evaluate}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")


def lay_policies(workspace: Workspace) -> None:
    for name in ("sft", "policy"):
        save_tiny_policy(workspace.path / "models" / name)


def read(workspace: Workspace, path: str) -> Any:
    return json.loads((workspace.path / path).read_text(encoding="utf-8"))


GPQA_ROWS = [
    {
        "Record ID": f"rec{i}",
        "Question": f"Which of the four quantities is the one that experiment {i} measures first?",
        "Correct Answer": f"momentum of body {i}",
        "Incorrect Answer 1": f"charge of body {i}",
        "Incorrect Answer 2": f"mass of body {i}",
        "Incorrect Answer 3": f"spin of body {i}",
    }
    for i in range(12)
]


def reply(body: dict[str, Any]) -> tuple[int, Any]:
    """The policy after training knows the physics, the one before says A."""
    letter = re.search(r"\(([A-D])\) momentum", body["messages"][-1]["content"])
    assert letter is not None
    return completion(rf"So \boxed{{{letter[1] if body['model'] == 'after' else 'A'}}}.")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    server.script = [reply]
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    monkeypatch.setenv("VCPPO_EVALUATION_ENGINE", "openai")
    monkeypatch.setenv("VCPPO_OPENAI_BASE_URL", server.url)
    yield server
    server.close()


@pytest.mark.slow
def test_gpqa_on_a_server_from_prepared_rows_to_promotion(workspace: Workspace, server: Server) -> None:
    source = workspace.file_source("gpqa", GPQA_ROWS, dataset="gpqa", grader="gpqa", use="eval")
    configure(workspace, [source], samples_per_problem=4)
    assert workspace.run("prepare").returncode == 0
    lay_policies(workspace)
    done = workspace.run("evaluate")
    assert done.returncode == 0, done.stderr
    metrics = read(workspace, "metrics/evaluate.json")
    assert metrics["after"]["gpqa"]["average_at_k"] == 1.0
    assert 0.05 < metrics["before"]["gpqa"]["average_at_k"] < 0.5
    assert metrics["promotion"] == {"passed": True, "reasons": []}
    rows = pq.read_table(workspace.path / "data/evaluation/after.parquet").to_pylist()
    assert len(rows) == 12 * 4 and len({tuple(r["permutation"]) for r in rows}) > 8
    assert {(r["engine"], r["engine_version"], r["dtype"]) for r in rows} == {("openai", "served fp_1", None)}
    assert all(r["answer"] == r["gold"] for r in rows)
    # the declared prompt of the benchmark, not the one of training
    assert "the letter of the right option in \\boxed{}" in server.seen[0]["messages"][-1]["content"]
    written = "".join(path.read_text() for path in workspace.path.glob("records/*.json"))
    assert "sk-of-a-test" not in written + done.stdout + done.stderr


@pytest.mark.slow
def test_a_server_that_dies_keeps_the_finished_shards_and_another_attempt_draws_the_rest(
    workspace: Workspace, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = workspace.file_source("gpqa", GPQA_ROWS, dataset="gpqa", grader="gpqa", use="eval")
    configure(workspace, [source], samples_per_problem=1)
    assert workspace.run("prepare").returncode == 0
    lay_policies(workspace)
    monkeypatch.setenv("VCPPO_OPENAI_CONCURRENCY", "1")
    # the first of three shards has four samples; then the server refuses for good
    server.script = [*[reply] * 5, (401, {"error": "key revoked"})]
    failed = workspace.run("evaluate")
    said = failed.stdout + failed.stderr
    assert failed.returncode == 2 and "key revoked" in said and "Traceback" not in said
    assert len(list(workspace.path.glob("work/evaluate/*/shards/openai/before/gpqa/*.parquet"))) == 1
    server.seen.clear()
    server.script = [reply]
    done = workspace.run("evaluate")
    assert done.returncode == 0, done.stderr
    assert len(server.seen) == 12 - 5 + 12, "what the server has answered must not be asked for again"


@pytest.mark.slow
def test_an_untrained_policy_in_process_fails_on_unreadable_answers_and_keeps_its_samples(
    workspace: Workspace,
) -> None:
    sums = {"kind": "running_sum", "name": "more", "use": "eval", "num_problems": 6, "num_digits": 4}
    configure(workspace, [sums], samples_per_problem=2)
    assert workspace.run("prepare").returncode == 0
    lay_policies(workspace)
    # so that responses end by themselves
    for name in ("sft", "policy"):
        _end_soon(workspace.path / "models" / name)
    failed = workspace.run("evaluate")
    said = failed.stdout + failed.stderr
    assert failed.returncode == 3, said
    assert "Traceback" not in said and "before training: more: " in said
    (kept,) = workspace.path.glob("work/evaluate/*/out/data/evaluation/before.parquet")
    assert pq.read_table(kept).num_rows == 12
    assert not (workspace.path / "metrics/evaluate.json").exists()
    configure(workspace, [sums], samples_per_problem=2, max_parser_failure_rate=None)
    done = workspace.run("evaluate")
    assert done.returncode == 0, done.stderr
    metrics = read(workspace, "metrics/evaluate.json")
    assert metrics["after"]["more"]["parser_failure_rate"] > 0.02
    assert metrics["difference"]["more"]["difference"] == 0.0, "the same policy twice, the same noise"
    assert not metrics["promotion"]["passed"]
    columns = pq.read_schema(workspace.path / "data/evaluation/after.parquet").names
    assert {"engine", "engine_version", "dtype", "batch_size", "seed", "temperature", "top_p"} <= set(columns)


def _end_soon(folder: Path) -> None:
    """Make every token likely to be the last: the first letters of the alphabet end a response too."""
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": list(range(20, 60))}), encoding="utf-8")
