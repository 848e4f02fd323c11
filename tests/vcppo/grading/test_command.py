"""`python -m vcppo grade`: lines in, lines out, bad lines by number."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path

import pytest

from vcppo.commands import grade as command
from vcppo.grading import Grade, graders


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["grade", *arguments])
    code = args.run(args)
    assert isinstance(code, int)
    return code


def write(path: Path, *rows: object) -> str:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return str(path)


def row(number: int | str, response: str, gold: str, **more: object) -> dict[str, object]:
    return {"id": number, "response": response, "gold": gold, **more}


def test_each_line_gets_its_status_and_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(
        tmp_path / "answers.jsonl",
        row(1, r"\boxed{042}", "42"),
        row("b", "Answer: 41", "42"),
        row("c", "<think>", "42"),
        row("d", "<think>", "42", finish_reason="length"),
        row("e", "Answer: ４２", "42", finish_reason=None),
    )
    assert run("--benchmark", "aime", file) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [
        {"id": 1, "status": "right", "answer": "42"},
        {"id": "b", "status": "wrong", "answer": "41"},
        {"id": "c", "status": "no_answer", "answer": None},
        {"id": "d", "status": "truncated", "answer": None},
        {"id": "e", "status": "right", "answer": "42"},
    ]
    assert err == "aime: 5 graded (2 right, 1 wrong, 1 no_answer, 1 truncated), 0 bad lines skipped\n"


def test_math_and_gpqa(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    math = write(
        tmp_path / "math.jsonl", row(1, r"\boxed{\frac{2}{4}}", "0.5"), row(2, r"\boxed{9^{9^{9^9}}}", "5")
    )
    gpqa = write(tmp_path / "gpqa.jsonl", row(1, "Answer: (C) 3.2 eV", "C"))
    assert run("--benchmark", "math", math) == run("--benchmark", "gpqa", gpqa) == 0
    statuses = [json.loads(line)["status"] for line in capsys.readouterr().out.splitlines()]
    assert statuses == ["right", "wrong", "right"]


def test_bad_lines_are_named_by_number_and_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.jsonl"
    lines = [
        json.dumps(row(1, "Answer: 1", "1")).encode(),
        b"{not json",
        b"",
        b"[1, 2]",
        json.dumps({"id": 5, "gold": "1"}).encode(),
        json.dumps(row(6, "Answer: 1", 1)).encode(),  # type: ignore[arg-type]
        json.dumps({"id": None, "response": "", "gold": "1"}).encode(),
        b'{"id": 8, "response": "\xff", "gold": "1"}',
        json.dumps(row(9, "Answer: 2", "1")).encode(),
        b"[" * 100_000,
        *(
            json.dumps(row(number, "Answer: 1", "1", finish_reason=reason)).encode()
            for number, reason in enumerate((0, False, [], {}, 1.5, ["stop"]), 11)
        ),
        json.dumps({"id": True, "response": "", "gold": "1"}).encode(),
    ]
    file.write_bytes(b"\n".join(lines))
    assert run("--benchmark", "aime", str(file)) == 3
    out, err = capsys.readouterr()
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 9]
    for number, words in [
        (2, "not JSON"),
        (4, "got list"),
        (5, "lacks response"),
        (6, "gold must be text, got int"),
        (7, "id must be"),
        (8, "not JSON"),
        (10, "not JSON"),
        (11, "finish_reason must be text, got int"),
        (12, "finish_reason must be text, got bool"),
        (13, "finish_reason must be text, got list"),
        (14, "finish_reason must be text, got dict"),
        (15, "finish_reason must be text, got float"),
        (16, "finish_reason must be text, got list"),
        (17, "id must be text or a whole number, got bool"),
    ]:
        assert any(f"line {number}: " in line and words in line for line in err.splitlines()), (number, err)
    assert "2 graded (1 right, 1 wrong), 14 bad lines skipped" in err
    assert "Traceback" not in err


def test_each_of_many_bad_lines_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "answers.jsonl", *["nonsense"] * 2000, row(1, "Answer: 1", "1"))
    assert run("--benchmark", "aime", file) == 3
    out, err = capsys.readouterr()
    named = [line.partition(": not JSON")[0] for line in err.splitlines()[:-1]]
    assert named == [f"{file}: line {number}" for number in range(1, 2001)]
    assert len(out.splitlines()) == 1 and "2000 bad lines skipped" in err


def test_an_unreadable_gold_is_a_grader_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "answers.jsonl", row(1, "Answer: 1", "1"), row(2, "Answer: 1", "one"))
    assert run("--benchmark", "aime", file) == 5
    out, err = capsys.readouterr()
    assert [json.loads(line)["status"] for line in out.splitlines()] == ["right", "grader_error"]
    assert "line 2: grader error: gold" in err and "1 grader_error" in err


def test_a_broken_grader_ends_the_command_without_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(graders._PURE, "aime", lambda response, gold, reason: Grade("wrong"))
    assert run("--benchmark", "aime", write(tmp_path / "answers.jsonl", row(1, "Answer: 1", "1"))) == 5
    out, err = capsys.readouterr()
    assert out == "" and "canary of the aime grader" in err and "Traceback" not in err


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--benchmark", "aime", str(tmp_path / name)) == 3
    assert "cannot read" in capsys.readouterr().err


def test_nothing_to_grade_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rows in ([], ["", "  "]):
        file = write(tmp_path / "empty.jsonl", *rows)
        assert run("--benchmark", "aime", file) == 3
        assert capsys.readouterr().err.startswith(f"grade: {file} holds no line to grade; give one ")
    assert run("--benchmark", "aime", write(tmp_path / "bad.jsonl", "nonsense")) == 3
    assert "0 graded (none), 1 bad lines skipped" in capsys.readouterr().err


def test_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(json.dumps(row(1, "Answer: 1", "1")).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert run("--benchmark", "aime", "-") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "right"


def test_standard_input_that_is_closed_or_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # what Python makes of a closed one
    assert run("--benchmark", "aime", "-") == 2
    assert "grade: standard input is closed; pipe lines into it" in capsys.readouterr().err
    descriptor = os.open(tmp_path / "written", os.O_CREAT | os.O_WRONLY)
    with open(descriptor, encoding="utf-8") as stream:  # noqa: PTH123  by number, as Python opens its own
        monkeypatch.setattr(sys, "stdin", stream)
        assert run("--benchmark", "aime", "-") == 3
    assert "cannot read -: Bad file descriptor" in capsys.readouterr().err


def test_an_unknown_benchmark_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("--benchmark", "gsm", "file.jsonl")
    assert ended.value.code == 2
    assert "aime" in capsys.readouterr().err
