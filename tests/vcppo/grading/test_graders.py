"""The public functions: canaries, golds, errors, what is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vcppo.errors import ConfigurationError, DataError, GraderError
from vcppo.grading import Grade, canonical_gold, grade, grade_batch, graders
from vcppo.grading.pool import GradingPool
from vcppo.grading.result import Status

BROKEN_WORKER = """
import json, os, sys
print(json.dumps({"ready": os.getpid()}), flush=True)
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], %s}), flush=True)
"""


def broken_pool(tmp_path: Path, reply: str) -> GradingPool:
    script = tmp_path / "worker.py"
    script.write_text(BROKEN_WORKER % reply)
    return GradingPool(num_workers=1, worker_command=(sys.executable, str(script)))


@pytest.mark.parametrize(
    "reply",
    ['"same": False', '"same": True', '"error": "boom", "kind": "grader"'],
    ids=["never right", "always right", "always an error"],
)
def test_a_broken_math_worker_fails_the_batch(reply: str, tmp_path: Path) -> None:
    with broken_pool(tmp_path, reply) as pool, pytest.raises(GraderError, match="canary of the math grader"):
        grade_batch([(r"\boxed{5}", "5")], "math", pool)


def test_a_worker_that_ends_at_once_fails_the_batch() -> None:
    with (
        GradingPool(num_workers=1, worker_command=(sys.executable, "-c", "pass")) as pool,
        pytest.raises(GraderError, match="did not come up"),
    ):
        grade_batch([(r"\boxed{5}", "5")], "math", pool)


def test_a_worker_that_never_answers_fails_the_batch(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, os, time\nprint(json.dumps({'ready': os.getpid()}), flush=True)\ntime.sleep(600)"
    )
    command = (sys.executable, str(script))
    with (
        GradingPool(num_workers=1, timeout_seconds=0.2, startup_seconds=20, worker_command=command) as pool,
        pytest.raises(GraderError, match="canary of the math grader"),
    ):
        grade_batch([(r"\boxed{5}", "5")], "math", pool)


@pytest.mark.parametrize("benchmark", ["aime", "gpqa"])
@pytest.mark.parametrize("status", ["right", "wrong", "no_answer"])
def test_a_broken_pure_grader_fails_the_batch(
    benchmark: str, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(graders._PURE, benchmark, lambda response, gold, reason: Grade(status))
    with pytest.raises(GraderError, match=f"canary of the {benchmark} grader"):
        grade_batch([("Answer: 42", "42")], benchmark)


def test_a_grader_that_raises_fails_the_batch_and_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(response: str, gold: str, reason: str) -> Grade:
        raise RuntimeError("bug")

    monkeypatch.setitem(graders._PURE, "aime", raising)
    with pytest.raises(GraderError, match="RuntimeError: bug"):
        grade_batch([("Answer: 42", "42")], "aime")
    assert grade("Answer: 42", "42", "aime") == Grade("grader_error", None, "RuntimeError: bug")


def test_an_empty_batch_still_grades_its_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert grade_batch([], "aime") == []
    monkeypatch.setitem(graders._PURE, "aime", lambda response, gold, reason: Grade("wrong"))
    with pytest.raises(GraderError):
        grade_batch([], "aime")


def test_one_unreadable_gold_does_not_end_the_batch() -> None:
    grades = grade_batch([("Answer: 1", "1"), ("Answer: 1", "one"), ("Answer: 1", "2")], "aime")
    assert [found.status for found in grades] == ["right", "grader_error", "wrong"]
    assert "'one'" in grades[1].detail
    assert grade(r"\boxed{\frac{1}{3}}", r"\star \frac{", "math").status == "grader_error"
    assert grade("Answer: C", "F", "gpqa").status == "grader_error"


@pytest.mark.parametrize(
    ("gold", "benchmark", "canonical"),
    [
        ("042", "aime", "42"),
        ("000", "aime", "0"),
        ("73.0", "aime", "73"),
        ("$25$", "aime", "25"),
        ("（c）", "gpqa", "C"),
        ("(B)", "gpqa", "B"),
        (r"$\dfrac{1}{2}$.", "math", r"\frac{1}{2}"),
        (r"\boxed{5}", "math", "5"),
        (r"\text{Evelyn}", "math", r"\text{Evelyn}"),
        ("12:00", "math", "12:00"),
        (r"10\%", "math", r"\frac{10}{100}"),
    ],
)
def test_canonical_gold(gold: str, benchmark: str, canonical: str) -> None:
    assert canonical_gold(gold, benchmark) == canonical
    assert canonical_gold(canonical, benchmark) == canonical


@pytest.mark.parametrize(
    ("gold", "benchmark"),
    [
        ("1000", "aime"),
        ("-1", "aime"),
        ("1/2", "aime"),
        ("", "aime"),
        ("42, 43", "aime"),
        ("E", "gpqa"),
        ("", "gpqa"),
        ("AB", "gpqa"),
        ("", "math"),
        (r"\frac{", "math"),
        ("9^{9^{9^{9}}}", "math"),
        ("1+" * 600 + "1", "math"),
    ],
)
def test_a_gold_that_cannot_be_graded_against_is_a_data_error(gold: str, benchmark: str) -> None:
    with pytest.raises(DataError):
        canonical_gold(gold, benchmark)


def test_gold_that_is_no_text_is_a_data_error() -> None:
    with pytest.raises(DataError, match="int"):
        canonical_gold(42, "aime")  # type: ignore[arg-type]


def test_an_unknown_benchmark_names_the_allowed_ones() -> None:
    for call in (
        lambda: grade("", "", "gsm"),
        lambda: grade_batch([], "gsm"),
        lambda: canonical_gold("", "gsm"),
    ):
        with pytest.raises(ConfigurationError, match="'gsm'; allowed: aime, math, gpqa"):
            call()


def test_aime_and_gpqa_import_no_algebra_and_nothing_imports_torch(root: Path) -> None:
    code = (
        "import sys; from vcppo.grading import grade\n"
        "assert grade('Answer: 7', '7', 'aime').status == grade('Answer: C', 'C', 'gpqa').status == 'right'\n"
        "assert grade(r'\\boxed{\\frac{2}{4}}', '0.5', 'math').status == 'right'\n"
        "print([name for name in ('torch', 'math_verify', 'sympy', 'numpy', 'ray') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
