"""`python -m vcppo compare A B` on files of the stored schema: numbers, plain words, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from training.generation.shard_files import rollout_schema
from vcppo.cli import main

Row = dict[str, Any]
Scores = list[list[int]]


def rows(scores: Scores, **more: Any) -> list[Row]:
    """Samples of stored evaluations: 1 for right, 0 for wrong."""
    return [
        {
            "id": f"aime/{question}",
            "data_source": "aime",
            "grader": "aime",
            "sample": sample,
            "gold": "42",
            "status": "right" if score else "wrong",
            "prompt_hash": f"hash of {question}",
            "engine": "torch",
            "engine_version": "2.13.0",
            "dtype": "float32",
            "batch_size": 256,
            "seed": 1,
            "temperature": 1.0,
            "top_p": 0.7,
            "top_k": 0,
            "max_response_tokens": 64,
            **more,
        }
        for question, own in enumerate(scores)
        for sample, score in enumerate(own)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Callable[[str, list[Row]], Path]:
    """Write an evaluation as stage evaluate stores it."""

    def write(name: str, samples: list[Row]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(samples, schema=rollout_schema()), path)
        return path

    return write


MIXED = [[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0]] * 6
BETTER = [[1, 1, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]] * 6


def run(*arguments: str | Path) -> int:
    return main(["compare", *map(str, arguments)])


def test_a_clear_difference_is_better_with_its_interval_and_p_value(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = store("a.parquet", rows(MIXED)), store("b.parquet", rows(BETTER))
    assert run(a, b) == 0
    text = capsys.readouterr().out
    assert "aime: 24 questions x 4 samples" in text and "B is better than A" in text
    assert run(b, a) == 0
    assert "B is worse than A" in capsys.readouterr().out


def test_json_holds_the_same_numbers_and_nothing_else_is_printed(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store("a.parquet", rows(MIXED)), store("b.parquet", rows(BETTER)), "--json") == 0
    result = json.loads(capsys.readouterr().out)["benchmarks"]["aime"]
    assert result["average_a"] == pytest.approx(sum(map(sum, MIXED)) / 96)
    assert result["difference"] == pytest.approx(result["average_b"] - result["average_a"])
    assert result["low"] > 0 and result["p_value"] < 0.05 and result["conclusive"]
    assert (result["num_questions"], result["samples_per_problem"]) == (24, 4)


def test_a_benchmark_too_small_to_tell_says_so_and_what_it_could_show(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = store("a.parquet", rows(MIXED[:4])), store("b.parquet", rows(BETTER[:4]))
    assert run(a, b) == 0
    assert "too small to tell: the smallest difference this benchmark could show is 0." in (
        capsys.readouterr().out
    )


def test_an_evaluation_does_not_differ_from_itself(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    a = store("a.parquet", rows(MIXED))
    assert run(a, a) == 0
    assert "no question differs between A and B" in capsys.readouterr().out


def test_workspaces_and_folders_are_found(
    store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store("one/data/evaluation/after.parquet", rows(MIXED))
    store("two/after.parquet", rows(BETTER))
    assert run(tmp_path / "one", tmp_path / "two") == 0
    assert str(tmp_path / "one/data/evaluation/after.parquet") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("b", "message"),
    [
        (rows(MIXED, temperature=0.6), "temperature 1.0 in A, 0.6 in B"),
        (rows(MIXED, max_response_tokens=32), "max_response_tokens 64 in A, 32 in B"),
        (rows(MIXED, engine="vllm"), "engine torch in A, vllm in B"),
        (rows(MIXED, batch_size=8), "batch_size 256 in A, 8 in B"),
        (rows([own[:2] for own in MIXED]), "samples_per_problem 4 in A, 2 in B"),
        (rows(MIXED[:-1]), "not the same questions: 1 only in A (first: aime/23)"),
        (rows([*MIXED, [1, 1, 1, 1]]), "not the same questions: 1 only in B (first: aime/24)"),
        (rows(MIXED, prompt_hash="other"), "24 questions are asked or graded otherwise"),
        (rows(MIXED, gold="43"), "24 questions are asked or graded otherwise"),
        (rows(MIXED, data_source="math"), "not the same benchmarks: A has aime; B has math"),
        (rows(MIXED, status="grader_error"), "no grade is not a wrong answer"),
        ([], "holds no sample"),
    ],
)
def test_other_questions_or_settings_are_refused_by_name(
    store: Any, capsys: pytest.CaptureFixture[str], b: list[Row], message: str
) -> None:
    assert run(store("a.parquet", rows(MIXED)), store("b.parquet", b)) == 3
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err and captured.out == ""


def changed(samples: list[Row], *changes: tuple[int, str, Any]) -> list[Row]:
    """The samples, some columns of some rows changed."""
    samples = [dict(row) for row in samples]
    for index, column, value in changes:
        samples[index][column] = value
    return samples


SOUND = rows(MIXED)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (SOUND * 2, "question aime/0 has sample 0 2 times (8 rows, 4 samples)"),
        ([*SOUND, SOUND[9]], "question aime/2 has sample 1 2 times (5 rows, 4 samples)"),
        (changed(SOUND, (9, "sample", 0)), "question aime/2 has sample 0 2 times (4 rows, 3 samples)"),
        (changed(SOUND, (9, "sample", 7)), "question aime/2 has no sample 1"),
        (rows(MIXED, sample=0), "question aime/0 has sample 0 4 times (4 rows, 1 samples)"),
        (SOUND[:-1], "question aime/23 has no sample 3 (3 rows, 3 samples)"),
        (SOUND[:13] + SOUND[14:], "question aime/3 has no sample 1"),
        ([*SOUND, {**SOUND[0], "sample": 4}], "question aime/0 has a sample 4 (5 rows, 5 samples)"),
        (
            changed(SOUND, (9, "gold", "43")),
            "aime/2 is not the same in all its samples: gold is '42' in one sample, '43' in sample 1",
        ),
        (
            changed(SOUND, (9, "prompt_hash", "x")),
            "prompt_hash is 'hash of 2' in one sample, 'x' in sample 1",
        ),
    ],
)
@pytest.mark.parametrize("name", ["A", "B"])
def test_every_question_has_each_sample_once(
    store: Any, capsys: pytest.CaptureFixture[str], samples: list[Row], message: str, name: str
) -> None:
    good, bad = store("good.parquet", SOUND), store("bad.parquet", samples)
    assert run(*((bad, good) if name == "A" else (good, bad))) == 3
    captured = capsys.readouterr()
    assert f"aime: {name}: question" in captured.err and message in captured.err and captured.out == ""


def test_the_same_wrong_samples_in_both_are_no_comparison(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = store("bad.parquet", rows(MIXED, sample=0))
    assert run(bad, bad) == 3
    assert "allowed is the same number of samples for each question (most have 1)" in capsys.readouterr().err


def test_the_question_whose_gold_differs_is_named_with_both_golds(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    b = changed(SOUND, *((index, "gold", "43") for index in range(8, 12)))
    assert run(store("a.parquet", SOUND), store("b.parquet", b)) == 3
    assert "(first: aime/2: gold is '42' in A, '43' in B)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("data_source", None, "data_source is None, allowed is a text"),
        ("id", None, "id is None, allowed is a text"),
        ("id", ["aime/0"], "id is ['aime/0'], allowed is a text"),
        ("id", 3, "id is 3, allowed is a text"),
        ("status", ["right"], "status is ['right'], allowed is a text"),
        ("status", "correct", "status is 'correct', allowed are right, wrong, no_answer, "),
        ("gold", {"text": "42"}, "gold is {'text': '42'}, allowed is a text"),
        ("sample", None, "sample is None, allowed is a whole number"),
        ("sample", 1.5, "sample is 1.5, allowed is a whole number"),
        ("permutation", "ABCD", "permutation is 'ABCD', allowed is a list"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_row(
    store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str, value: Any, message: str
) -> None:
    good, bad = store("good.parquet", SOUND), tmp_path / "bad.parquet"
    table = pq.read_table(good)
    index = table.schema.get_field_index(column)
    pq.write_table(table.set_column(index, column, pa.array([value] * len(SOUND))), bad)
    assert run(good, bad) == 3
    captured = capsys.readouterr()
    assert f"bad.parquet: row 1: {message}" in captured.err and captured.out == ""


def test_a_damaged_file_is_named_wherever_the_damage_is(
    store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = store("good.parquet", SOUND), tmp_path / "bad.parquet"
    content = good.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for start, length in ((4, 200), (footer, 1), (footer + 40, 60), (len(content) - 8, 4)):
        bad.write_bytes(content[:start] + bytes([0xFF]) * length + content[start + length :])
        assert run(good, bad) == 3
        assert "bad.parquet: is no parquet file that can be read: " in capsys.readouterr().err


def test_text_that_is_no_utf8_is_named(
    store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = store("good.parquet", SOUND), tmp_path / "bad.parquet"
    table = pq.read_table(good)
    raw = pa.array([b"\xff\xfe"] * len(SOUND), pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(table.set_column(table.schema.get_field_index("gold"), "gold", text), bad)
    assert run(good, bad) == 3
    assert "bad.parquet: is no parquet file that can be read: " in capsys.readouterr().err


def test_a_setting_that_differs_can_be_accepted_and_is_then_noted(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = store("a.parquet", rows(MIXED)), store("b.parquet", rows(BETTER, engine_version="2.14"))
    assert run(a, b, "--allow", "engine_version") == 0
    assert "note: accepted: engine_version 2.13.0 in A, 2.14 in B" in capsys.readouterr().out


def test_a_few_samples_without_a_grade_are_left_out_and_noted(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    b = rows(BETTER)
    b[0]["status"] = "grader_error"
    assert run(store("a.parquet", rows(MIXED)), store("b.parquet", b)) == 0
    out = capsys.readouterr().out
    assert "note: left out: 1 samples of B without a grade" in out and "B is better" in out


def test_golds_of_permuted_options_may_differ_and_plain_ones_may_not(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a = store("a.parquet", rows(MIXED, permutation=[0, 1, 2, 3], gold="A"))
    b = store("b.parquet", rows(BETTER, permutation=[1, 0, 2, 3], gold="B", seed=2))
    assert run(a, b) == 0
    assert "B is better" in capsys.readouterr().out


def test_the_gold_of_permuted_options_is_the_option_not_its_letter(
    store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a = store("a.parquet", rows(MIXED, permutation=[0, 1, 2, 3], gold="A"))
    b = store("b.parquet", rows(BETTER, permutation=[1, 0, 2, 3], gold="A"))
    assert run(a, b) == 3
    assert "aime/0: gold is 'option 0' in A, 'option 1' in B" in capsys.readouterr().err


def test_files_that_are_no_evaluation_are_named(
    tmp_path: Path, store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    good = store("a.parquet", rows(MIXED))
    (tmp_path / "text.parquet").write_text("no parquet")
    pq.write_table(pa.table({"id": ["1"]}), tmp_path / "other.parquet")
    for bad, message in (
        (tmp_path / "none", "there is no such file"),
        (tmp_path, "after.parquet: there is no such file"),
        (tmp_path / "text.parquet", "is no parquet file"),
        (tmp_path / "other.parquet", "holds no evaluation, lacks batch_size, data_source"),
    ):
        assert run(good, bad) == 3
        assert message in capsys.readouterr().err
