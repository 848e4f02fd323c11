"""Shards: complete, resumable, the same however many workers draw them, each row with how it was drawn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.training.generation import draw_for_tests as drawing
from tests.training.generation.conftest import save_tiny_policy
from training.generation.engine import Engine, encode_requests
from training.generation.prompts import Problem, first_by_hash, read_problems
from training.generation.rollouts import read_rollouts
from training.generation.samples import Draw, Request, plain_requests
from training.generation.scoring import score_responses
from training.generation.shard_files import prompt_hash
from vcppo.config import Runtime
from vcppo.config.base import SamplingConfig
from vcppo.config.stages import RewardConfig
from vcppo.errors import DataError, GraderError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def rows(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What one worker draws without being disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    drawing.draw(policy, folder, workers=1)
    return read_rollouts(folder)


def test_every_sample_of_every_problem_is_drawn_once(rows: list[dict[str, Any]]) -> None:
    wanted = [(f"sums/{i}", k) for i in range(drawing.NUM_PROBLEMS) for k in range(drawing.SAMPLES)]
    assert [(row["id"], row["sample"]) for row in rows] == wanted
    assert len({tuple(row["response_ids"]) for row in rows}) > 30, "samples must differ"


def test_every_row_says_how_it_was_drawn(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["engine"] == "torch" and "transformers" in row["engine_version"]
        assert (row["dtype"], row["batch_size"], row["seed"]) == ("float32", 4, 1)
        assert (row["temperature"], row["top_p"], row["top_k"]) == (0.9, 1.0, 30)
        assert row["max_response_tokens"] == 40 and row["permutation"] is None
        assert row["num_response_tokens"] == len(row["response_ids"]) == len(row["log_probs"])
    assert len({row["prompt_hash"] for row in rows}) == drawing.NUM_PROBLEMS


def test_what_is_there_is_not_drawn_again_and_a_half_written_shard_is(
    policy: Path, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    paths = drawing.draw(policy, tmp_path, workers=1)
    kept = paths[0].stat().st_mtime_ns
    paths[3].unlink()
    paths[3].with_suffix(".partial").write_bytes(b"PAR1 half")
    drawing.draw(policy, tmp_path, workers=1)
    assert paths[0].stat().st_mtime_ns == kept
    assert read_rollouts(tmp_path) == rows


def test_a_prompt_over_the_limit_is_refused_and_named(policy: Path) -> None:
    engine = Engine(drawing.settings(policy))
    long = Problem("p", "s", "aime", ({"role": "user", "content": "x" * 100},), "1")
    with pytest.raises(DataError, match="max_prompt_tokens"):
        engine.sample(plain_requests(long, 1), Draw(SamplingConfig(), 8, "test"))


def test_samples_that_show_other_messages_have_other_prompts(policy: Path) -> None:
    engine = Engine(drawing.settings(policy))
    problem = Problem("p", "s", "gpqa", ({"role": "user", "content": "A"},), "A")
    shown = [Request(problem, i, ({"role": "user", "content": text},), "A") for i, text in enumerate("ABA")]
    first, second, third = encode_requests(engine.tokenizer, shown, 64)
    assert first == third != second


def test_a_draw_has_its_own_sampling_and_limit(policy: Path) -> None:
    engine = Engine(drawing.settings(policy))
    problem = Problem("p", "s", "aime", ({"role": "user", "content": "1"},), "1")
    greedy = engine.sample(plain_requests(problem, 2), Draw(SamplingConfig(temperature=0.0), 5, "test"))
    assert greedy[0].response_ids == greedy[1].response_ids
    assert all(response.num_tokens <= 5 for response in greedy)


def test_a_choice_by_hash_does_not_depend_on_the_order() -> None:
    problems = [Problem(f"p/{i}", "s", "aime", (), "1") for i in range(30)]
    chosen = {p.id for p in first_by_hash(problems, 7)}
    assert len(chosen) == 7 and chosen == {p.id for p in first_by_hash(problems[::-1], 7)}
    assert chosen > {p.id for p in first_by_hash(problems, 5)}


def test_problems_bring_their_text_and_options_where_the_file_has_them(tmp_path: Path) -> None:
    import pyarrow as pa

    row = {
        "data_source": "s",
        "prompt": [{"role": "user", "content": "Q"}],
        "reward_model": {"ground_truth": "B"},
        "extra_info": {"id": "s/1", "grader": "gpqa", "problem": "Q", "options": ["a", "b", "c", "d"]},
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "eval.parquet")
    (problem,) = read_problems(tmp_path / "eval.parquet")
    assert (problem.text, problem.options) == ("Q", ("a", "b", "c", "d"))
    pq.write_table(pa.Table.from_pylist([row]).slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="holds no problem"):
        read_problems(tmp_path / "empty.parquet")


def test_a_gold_that_the_grader_cannot_read_fails_the_batch_and_scores_nothing() -> None:
    items = [(r"\boxed{1}", "1", "aime", "stop"), (r"\boxed{1}", "no integer", "aime", "stop")]
    with pytest.raises(GraderError, match="nothing of the batch is scored"):
        score_responses(items, RewardConfig())


def exhausting(number: int) -> tuple[str, str, str, str]:
    """An answer on which the grader's time runs out."""
    answer = rf"\sqrt{{{number}+\sqrt{{x^{{99}}+{number}}}}}^{{501}}(x+{number})^{{1999}}"
    return rf"\boxed{{{answer}}}", "104+x", "math", "stop"


def test_an_answer_that_exhausts_the_grader_gets_no_grade_and_the_others_theirs() -> None:
    good = (r"\boxed{\frac{3}{6}}", "0.5", "math", "stop")
    scored = score_responses([good, exhausting(3), good], RewardConfig(right=1.0, wrong=-1.0))
    assert [s.status for s in scored] == ["right", "grader_error", "right"]
    assert [s.score for s in scored] == [1.0, 0.0, 1.0]
    assert [s.is_graded for s in scored] == [True, False, True]


def test_many_answers_that_exhaust_the_grader_are_a_failure_of_the_grader() -> None:
    with pytest.raises(GraderError, match="3 of 3 answers of a batch cannot be graded"):
        score_responses([exhausting(number) for number in (3, 5, 7)], RewardConfig())


def test_prompt_hashes_tell_roles_and_contents_apart() -> None:
    hashes = [
        prompt_hash([{"role": role, "content": content}])
        for role, content in (("user", "ab"), ("user", "a"), ("system", "ab"))
    ]
    assert len(set(hashes)) == 3
    assert hashes[0] == prompt_hash([{"content": "ab", "role": "user"}])


@pytest.mark.slow
def test_two_ray_workers_draw_what_one_process_draws(
    policy: Path, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    drawing.draw(policy, tmp_path, workers=2)
    assert read_rollouts(tmp_path) == rows


@pytest.mark.slow
def test_a_killed_run_loses_no_finished_shard_and_ends_with_the_same_rows(
    policy: Path, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    command = [sys.executable, "-m", drawing.__name__, str(policy), str(tmp_path), "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (finished := sorted(tmp_path.glob("*.parquet"))):
        assert process.poll() is None and time.monotonic() < deadline, "no shard was finished"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in finished}
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert read_rollouts(tmp_path) == rows
    assert {path: path.stat().st_mtime_ns for path in finished} == before
    assert done.stdout.count("\n") <= drawing.NUM_PROBLEMS // 2 - len(finished)


@pytest.mark.slow
def test_a_workers_own_error_arrives_without_its_traceback(policy: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from training.generation.rollouts import generate_shards

    short = replace(drawing.settings(policy), max_prompt_tokens=3)
    with pytest.raises(DataError, match="max_prompt_tokens") as caught:
        generate_shards(
            drawing.plan(tmp_path), short, RewardConfig(), Runtime(devices_per_node=2), lambda *_: None
        )
    assert type(caught.value) is DataError and "Traceback" not in str(caught.value)


@pytest.mark.slow
def test_math_answers_are_graded_alike_in_a_ray_worker_and_in_the_main_process() -> None:
    import ray

    from training.ray_session import ray_session

    items = [
        (r"\boxed{\frac{2}{4}}", r"\frac{1}{2}", "math", "stop"),
        (r"\boxed{\sqrt{12}}", r"2\sqrt{3}", "math", "stop"),
        (r"\boxed{0.6}", r"\frac{1}{2}", "math", "stop"),
    ]
    here = score_responses(items, RewardConfig())
    with ray_session(Runtime(), num_cpus=1):
        there = ray.get(ray.remote(score_responses).remote(items, RewardConfig()))
    assert [s.status for s in here] == ["right", "right", "wrong"]
    assert there == here
