"""Known datasets, each read from a small file of its schema; what is stripped, extracted and permuted on
the way."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from tasks.sources.catalogue import CATALOGUE, DAPO_TEMPLATES, licence_of, split_of
from tasks.sources.local_file import read
from tasks.sources.multiple_choice import letter_of, permuted, render
from tasks.sources.problem import Problem
from vcppo.config.sources import DatasetName, FileSource, HubSource
from vcppo.errors import DataError


def source(path: Path, dataset: str, **values: Any) -> FileSource:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return FileSource.model_validate(
        {"name": "mine", "path": str(path), "sha256": digest, "dataset": dataset, **values}
    )


def problems(tmp_path: Path, dataset: str, *rows: dict[str, Any]) -> list[Problem]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(read(source(path, dataset)))


def test_every_dataset_of_the_configuration_is_in_the_catalogue() -> None:
    assert set(CATALOGUE) == set(get_args(DatasetName))


def dapo_prompt(problem: str, which: int = 0) -> list[dict[str, str]]:
    template = DAPO_TEMPLATES[which]
    return [{"role": "user", "content": template.prefix + problem + template.suffix}]


# first and last letters that a strip by character sets would take off
TRICKY = 'Solve for n: "Answer:".'


@pytest.mark.parametrize("which", [0, 1])
def test_dapo_loses_its_template_and_nothing_of_the_problem(tmp_path: Path, which: int) -> None:
    row = {
        "data_source": "math_dapo",
        "prompt": dapo_prompt(TRICKY, which),
        "ability": "MATH",
        "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"},
        "extra_info": {"index": "9a9b6eb4-a1cb-49d1-8c1e-62eaf2f74079"},
    }
    (problem,) = problems(tmp_path, "dapo_math_17k", row)
    assert (problem.text, problem.answer) == (TRICKY, "34")
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    (same,) = read(source(path, "dapo_math_17k"))
    assert (same.id, same.text) == (problem.id, problem.text)


def test_a_dapo_row_without_its_template_is_named(tmp_path: Path) -> None:
    row = {"prompt": [{"role": "user", "content": "Compute 1+1."}], "label": "2"}
    with pytest.raises(
        DataError, match=r"row 1: column 'prompt.0.content': the prompt has none of the known"
    ):
        problems(tmp_path, "dapo_math_17k_slime", row)


def test_gsm8k_answers_stand_behind_the_hashes(tmp_path: Path) -> None:
    row = {"question": "How many?", "answer": "It is 500*3=<<500*3=1500>>1500.\n#### 1,500"}
    (problem,) = problems(tmp_path, "gsm8k", row)
    assert (problem.text, problem.answer) == ("How many?", "1500")
    with pytest.raises(DataError, match="does not end in `#### answer`"):
        problems(tmp_path, "gsm8k", {"question": "How many?", "answer": "Many."})


def test_math_answers_are_the_last_box_of_the_solution(tmp_path: Path) -> None:
    row = {
        "problem": "Find it.",
        "level": "Level 5",
        "type": "Algebra",
        "solution": r"First \boxed{1}, then $\boxed{\frac{a_{1}}{\sqrt{2}}}$.",
    }
    (problem,) = problems(tmp_path, "math", row)
    assert problem.answer == r"\frac{a_{1}}{\sqrt{2}}"
    assert problem.traces == (row["solution"],)


@pytest.mark.parametrize(
    ("dataset", "row", "id_"),
    [
        (
            "math_500",
            {"problem": "P", "solution": "s", "answer": "7", "unique_id": "test/a/1.json"},
            "test/a/1.json",
        ),
        (
            "aime_2024",
            {"id": 60, "problem": "P", "solution": "s", "answer": "7", "url": "u", "year": "2024"},
            "60",
        ),
        (
            "aime_2024_maxwell_jia",
            {"ID": "2024-II-4", "Problem": "P", "Solution": "s", "Answer": 7},
            "2024-II-4",
        ),
        ("aime_2025_math_ai", {"problem": "P", "answer": "7", "id": "0"}, "0"),
        ("aime_2025_opencompass", {"question": "P", "answer": "7"}, None),
        ("aime_2025_yentinglin", {"id": "I-1", "problem": "P", "answer": "7"}, "I-1"),
        ("aime_2025_matharena", {"problem_idx": 1, "problem": "P", "answer": 7}, "1"),
        ("dapo_math_17k_processed", {"prompt": "P", "solution": "7", "data_source": "d"}, None),
        ("dapo_math_17k_slime", {"prompt": dapo_prompt("P", 1), "label": "7"}, None),
    ],
)
def test_each_schema_gives_problem_answer_and_id(
    tmp_path: Path, dataset: str, row: dict[str, Any], id_: str | None
) -> None:
    (problem,) = problems(tmp_path, dataset, row)
    assert (problem.text, problem.answer) == ("P", "7")
    assert problem.id == f"mine/{id_ or hashlib.sha256(b'P').hexdigest()[:16]}"


def gpqa_row(number: int) -> dict[str, Any]:
    return {
        "Record ID": f"rec{number}",
        "Question": "Which?",
        "Correct Answer": "right",
        "Incorrect Answer 1": "wrong 1",
        "Incorrect Answer 2": "wrong 2",
        "Incorrect Answer 3": "wrong 3",
    }


def test_gpqa_gold_is_the_letter_of_the_right_option_wherever_it_stands(tmp_path: Path) -> None:
    letters = Counter()
    for problem in problems(tmp_path, "gpqa", *(gpqa_row(i) for i in range(400))):
        assert sorted(problem.options) == ["right", "wrong 1", "wrong 2", "wrong 3"]
        assert problem.options["ABCD".index(problem.answer)] == "right"
        assert f"({problem.answer}) right" in problem.shown.splitlines()
        letters[problem.answer] += 1
    assert all(70 < letters[letter] < 130 for letter in "ABCD")


def test_options_are_permuted_by_record_and_sample_alone() -> None:
    options = ["w", "x", "y", "z"]
    orders = [tuple(permuted("gpqa/rec1", options, sample)) for sample in range(64)]
    assert orders == [tuple(permuted("gpqa/rec1", options, sample)) for sample in range(64)]
    assert len(set(orders)) > 12
    assert {letter_of(order, 0) for order in orders} == set("ABCD")
    assert permuted("gpqa/rec2", options, 0) != permuted("gpqa/rec1", options, 0)
    assert render("Q", options).splitlines() == ["Q", "", "(A) w", "(B) x", "(C) y", "(D) z"]


def test_two_questions_with_the_same_stem_and_other_options_are_two() -> None:
    one = Problem("a", "Which?", "A", "row 1", options=("w", "x", "y", "z"))
    turned = Problem("a", "Which?", "B", "row 1", options=("x", "w", "y", "z"))
    other = Problem("b", "Which?", "A", "row 2", options=("w", "x", "y", "v"))
    assert one.compared == turned.compared != other.compared


@pytest.mark.parametrize("dataset", get_args(DatasetName))
def test_no_benchmark_is_asked_from_a_training_split_where_the_dataset_has_a_test_split(dataset: str) -> None:
    def split(**values: Any) -> str:
        given = {"name": "mine", "revision": "a" * 40, "dataset": dataset, **values}
        return split_of(HubSource.model_validate(given))

    both = {"gsm8k", "math"}
    tests_alone = {"math_500", "aime_2025_math_ai", "aime_2025_opencompass"}
    assert split(use="eval") == ("test" if dataset in both | tests_alone else "train")
    assert split(use="train") == split(use="split") == ("test" if dataset in tests_alone else "train")
    assert split(use="eval", split="validation") == "validation"


def test_a_dataset_that_nobody_knows_is_read_from_its_training_split() -> None:
    own = {"name": "mine", "revision": "a" * 40, "repository": "me/mine", "use": "eval"}
    assert split_of(HubSource.model_validate(own)) == "train"


def test_the_catalogue_gives_the_licence_that_the_configuration_leaves_open(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("")
    assert licence_of(source(path, "gsm8k")) == "MIT"
    assert licence_of(source(path, "gsm8k", licence="ours")) == "ours"


def test_columns_beside_a_known_dataset_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("")
    with pytest.raises(ValidationError, match="has columns of its own: remove problem_column"):
        source(path, "gsm8k", problem_column="question")
