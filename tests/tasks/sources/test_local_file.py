"""Source kind `file`: what is read from jsonl, parquet and csv, and what is said of files that are not as
declared."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.sources.local_file import read
from vcppo.config.sources import FileSource
from vcppo.errors import DataError

ROWS = [
    {"id": "a", "problem": "1 + 1 =", "answer": 2, "solution": "count"},
    {"id": "b", "problem": " «1, 2»\nnext? ", "answer": "3", "solution": "go on"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([{**row, "answer": str(row["answer"])} for row in rows]), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


def source(path: Path, **values: Any) -> FileSource:
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "0" * 64
    return FileSource.model_validate({"name": "mine", "path": str(path), "sha256": digest, **values})


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv"])
def test_every_kind_of_file_gives_the_same_problems(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"x{ending}", ROWS)
    problems = list(read(source(path, solution_column="solution")))
    assert [(p.id, p.text, p.answer, p.traces) for p in problems] == [
        ("mine/a", "1 + 1 =", "2", ("count",)),
        ("mine/b", "«1, 2»\nnext?", "3", ("go on",)),
    ]
    assert problems[1].where == f"{path}: row 2"


def test_ids_come_from_the_text_when_there_is_no_id_column(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", ROWS)
    ids = [p.id for p in read(source(path, id_column=None))]
    other = write(tmp_path / "y.jsonl", ROWS[::-1])
    assert ids == [p.id for p in read(source(other, id_column=None))][::-1]


def test_a_dotted_column_reaches_into_structs(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist([{"extra": {"raw": "1+1"}, "reward": {"truth": "2"}}]), path)
    (problem,) = read(source(path, problem_column="extra.raw", answer_column="reward.truth", id_column=None))
    assert (problem.text, problem.answer) == ("1+1", "2")


def test_blank_lines_of_jsonl_do_not_shift_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('\n{"id": "a", "problem": "p", "answer": "1"}\n', encoding="utf-8")
    assert next(read(source(path))).where.endswith("row 2")


def test_a_missing_file_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.jsonl: source mine: there is no such file \(looked in "):
        read(source(tmp_path / "gone.jsonl"))


def test_another_hash_is_an_error_that_gives_the_real_one_to_paste(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", ROWS)
    real = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DataError, match=f"sha256 is {real}, declared is {'f' * 64}"):
        read(source(path, sha256="f" * 64))


def test_an_unknown_kind_of_file_names_those_that_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "x.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=r"file kind '\.xlsx', allowed are \.jsonl, \.parquet, \.csv"):
        read(source(tmp_path / "x.xlsx"))


GOOD = '{"id": "a", "problem": "p", "answer": "1"}\n'


@pytest.mark.parametrize(
    ("second_line", "message"),
    [
        ('{"id": "b", "problem"', r"row 2: is not valid JSON"),
        pytest.param("[" * 200_000, r"row 2: is not valid JSON", id="nested too deep"),
        ("[1, 2]", r"row 2: holds a list, expected an object"),
        ('{"id": "b", "question": "p", "answer": "1"}', r"row 2: has no column 'problem'.*'question'"),
        ('{"id": "b", "problem": "p"}', r"row 2: has no column 'answer'"),
        ('{"id": "b", "problem": "p", "answer": null}', r"row 2: column 'answer' holds nothing"),
        ('{"id": "b", "problem": "p", "answer": ["1"]}', r"row 2: column 'answer' holds a list"),
        ('{"id": "b", "problem": "p", "answer": true}', r"row 2: column 'answer' holds a bool"),
        ('{"id": "b", "problem": "  ", "answer": "1"}', r"row 2: column 'problem' is empty"),
        ('{"id": "", "problem": "p", "answer": "1"}', r"row 2: column 'id' is empty"),
        (
            r'{"id": "b", "problem": "foo \ud800 bar", "answer": "1"}',
            r"row 2: column 'problem' holds '\\ud800'",
        ),
        (
            r'{"id": "b", "problem": "p", "answer": "\uDFFF"}',
            r"row 2: column 'answer' holds '\\udfff', half of",
        ),
        (r'{"id": "\ud800", "problem": "p", "answer": "1"}', r"row 2: column 'id' holds '\\ud800', half of"),
    ],
)
def test_a_malformed_row_is_named_by_number_and_fault(tmp_path: Path, second_line: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD + second_line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read(source(path)))


def test_whole_surrogate_pairs_and_columns_that_are_not_read_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        r'{"id": "a", "problem": "\ud83d\ude00?", "answer": "1", "note": "\ud800"}', encoding="utf-8"
    )
    assert [problem.text for problem in read(source(path))] == ["\N{GRINNING FACE}?"]


def test_bytes_that_are_not_utf8_are_named_by_row(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(GOOD.encode() + b'{"id": "\xff"}\n')
    with pytest.raises(DataError, match="row 2: is not valid JSON"):
        list(read(source(path)))
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,problem,answer\na,p,\xff\n")
    with pytest.raises(DataError, match=r"is not valid CSV in UTF-8"):
        list(read(source(path)))


@pytest.mark.parametrize("row", ["b,p", "b,p,1,2"])
def test_a_csv_row_of_another_width_is_named(tmp_path: Path, row: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"id,problem,answer\na,p,1\n{row}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"row 2: has not as many cells as the header"):
        list(read(source(path)))


def test_parquet_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    raw = pa.array([b"\xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": ["a"], "problem": text, "answer": ["1"]}), path)
    with pytest.raises(DataError, match=r"x\.parquet: is not a readable parquet file"):
        list(read(source(path)))


def test_a_torn_parquet_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"x\.parquet: is not a readable parquet file"):
        list(read(source(path)))


def test_a_parquet_file_with_corrupt_pages_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", ROWS * 50)
    content = bytearray(path.read_bytes())
    content[20:200] = bytes(180)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.parquet: is not a readable parquet file"):
        list(read(source(path)))
