"""Judged answers: the given ones where they are present, and the project's own table."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

from vcppo.grading import Grade, grade, grade_batch

_BATCH = 40  # the time of a batch is limited; a whole table in one would fail on a busy machine


def _rows(name: str) -> list[tuple[str, str, bool]]:
    """The list NAME of table_name.py beside this file."""
    path = Path(__file__).with_name(f"table_{name.lower()}.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def check(rows: list[tuple[str, str, bool]], grades: list[Grade]) -> None:
    assert len(rows) == len(grades)
    mistakes = [
        f"{response!r} against {gold!r}: must be {'right' if right else 'not right'}, got {found}"
        for (response, gold, right), found in zip(rows, grades, strict=True)
        if (found.status == "right") != right or found.status == "grader_error"
    ]
    assert not mistakes, "\n".join(mistakes)


@pytest.mark.parametrize("benchmark", ["aime", "math", "gpqa"])
def test_given_cases_are_graded_as_judged(benchmark: str, shared: Path) -> None:
    file = shared / "grading" / "cases.jsonl"
    if not file.exists():
        pytest.skip(f"{file} is absent; VCPPO_SHARED names the folder that holds grading/cases.jsonl")
    cases = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert Counter(case["kind"] for case in cases) == {"aime": 57, "math": 40, "gpqa": 26}
    rows = [(case["response"], case["gold"], case["correct"]) for case in cases if case["kind"] == benchmark]
    check(rows, grade_batch([(response, gold) for response, gold, _ in rows], benchmark))


@pytest.mark.parametrize(
    ("benchmark", "rows"),
    [
        ("aime", _rows("AIME")),
        ("aime", _rows("RIVALS")),
        ("math", _rows("RIVALS")),
        ("aime", _rows("TOUCHING")),
        ("math", _rows("TOUCHING")),
        ("aime", _rows("UNITS")),
        ("math", _rows("UNITS")),
        ("gpqa", _rows("GPQA")),
        ("gpqa", _rows("CHOICES")),
        ("steps", _rows("STEPS")),
        ("math", _rows("MATH")),
        *(
            ("math", [(rf"\boxed{{{content}}}", gold, right) for content, gold, right in _rows(name)])
            for name in ("MATH_BOXED", "MATH_LATEX")
        ),
    ],
    ids=[
        "aime",
        "aime rivals",
        "math rivals",
        "aime touching",
        "math touching",
        "aime units",
        "math units",
        "gpqa",
        "gpqa choices",
        "steps",
        "math",
        "math boxed",
        "math latex",
    ],
)
def test_own_table(benchmark: str, rows: list[tuple[str, str, bool]]) -> None:
    items = [(response, gold) for response, gold, _ in rows]
    batches = [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]
    check(rows, [found for batch in batches for found in grade_batch(batch, benchmark)])


def test_gold_answers_of_math_500_are_right_in_a_box_and_their_neighbours_are_not(shared: Path) -> None:
    file = shared / "data" / "math500.jsonl"
    if not file.exists():
        pytest.skip(f"{file} is absent; VCPPO_SHARED names the folder that holds data/math500.jsonl")
    golds = [json.loads(line)["answer"] for line in file.read_text(encoding="utf-8").splitlines()]
    check(
        [(gold, gold, True) for gold in golds],
        grade_batch([(rf"So $\boxed{{{gold}}}$.", gold) for gold in golds], "math"),
    )
    shifted = golds[1:] + golds[:1]
    grades = grade_batch(
        [(rf"\boxed{{{other}}}", gold) for other, gold in zip(shifted, golds, strict=True)], "math"
    )
    right = [
        pair
        for pair, found in zip(zip(shifted, golds, strict=True), grades, strict=True)
        if found.status == "right"
    ]
    assert all(other.removeprefix("x=") == gold for other, gold in right)


@pytest.mark.parametrize(
    ("benchmark", "response", "gold", "status"),
    [
        ("aime", "", "42", "no_answer"),
        ("aime", "The total is 42", "42", "no_answer"),
        ("aime", r"\boxed{}", "42", "no_answer"),
        ("aime", r"<think>\boxed{42}", "42", "no_answer"),
        ("aime", r"\boxed{42", "42", "no_answer"),
        ("aime", r"\boxed{6 \cdot 7}", "42", "wrong"),
        ("aime", r"\boxed{41} or \boxed{42}", "42", "wrong"),
        ("gpqa", "Both (A) and (C) look plausible.", "C", "no_answer"),
        ("gpqa", "Answer: A or C", "C", "wrong"),
        ("gpqa", "Answer: E", "C", "wrong"),
        ("gpqa", r"\boxed{3.2\text{ eV}}", "C", "wrong"),
        ("math", r"\boxed{\text{}}", "5", "no_answer"),
        ("math", "x = 5", "5", "no_answer"),
        ("math", r"\boxed{5, 6}", "5", "wrong"),
    ],
)
def test_status_tells_no_answer_from_a_wrong_one(
    benchmark: str, response: str, gold: str, status: str
) -> None:
    assert grade(response, gold, benchmark).status == status


@pytest.mark.parametrize(
    ("response", "reason", "status"),
    [
        (r"<think>so \boxed{42}", "length", "truncated"),
        ("and then we", "length", "truncated"),
        ("and then we", "abort", "truncated"),
        (r"\boxed{4", "length", "truncated"),
        ("Answer: 42", "length", "truncated"),  # may have become 421
        ("Answer: 42\nbecause", "length", "right"),
        (r"\boxed 42", "length", "truncated"),
        (r"\boxed{42} since", "length", "right"),
        ("Answer: 42", "stop", "right"),
        ("and then we", "stop", "no_answer"),
    ],
)
def test_a_cut_response_without_a_complete_answer_is_truncated(
    response: str, reason: str, status: str
) -> None:
    assert grade(response, "42", "aime", reason).status == status
    assert grade(response, "42", "math", reason).status == status
