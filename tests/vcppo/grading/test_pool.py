"""The pool with real workers: hanging answers, replacement, limits, threads, asyncio, Ray, a dead parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from vcppo.errors import GraderError
from vcppo.grading import Grade, GradeItem, grade, grade_batch
from vcppo.grading.math_cost import costly
from vcppo.grading.pool import GradingPool

HALF = (r"\frac{3}{6}", "0.5")
HANGING = r"(9+0)^{(9+0)^{(9+0)^{(9+0)}}}"  # what the pool gets here, `grade` refuses before it comes so far
POISONS = {
    "tower": r"\boxed{9^{9^{9^{9}}}}",
    "tower in a fraction": r"\boxed{\dfrac{5^{5^{5^{5^5}}} - 5}{16}}",
    "tower of sums": rf"\boxed{{{HANGING}}}",
    "huge power": r"\boxed{10^{100000000}}",
    "factorial": r"\boxed{100000000!}",
    "factorial of a power": r"\boxed{(10^8)!}",
    "factorials of factorials": r"\boxed{((99!)!)!}",
    "binomial": r"\boxed{\binom{10000000}{5000000}}",
    "sum": r"\boxed{\sum_{n=1}^{100000000} n}",
    "a thousand boxes": " ".join(rf"\boxed{{{number}}}" for number in range(1000)),
    "a thousand equal boxes but the last": r"\boxed{104}" * 1000 + r"\boxed{105}",
    "boxes in boxes": r"\boxed{" * 14_000 + "105" + "}" * 14_000,
    "unclosed boxes": r"\boxed{" * 14_000,
    "open braces": "{" * 100_000,
    "open braces in a box": r"\boxed{" + "{" * 100_000,
    "closed braces in a box": r"\boxed{" + "{" * 50_000 + "104" + "}" * 50_000 + "}",
    "digits": r"\boxed{" + "9" * 5_000 + "}",
    "nested fractions": r"\boxed{" + r"\frac{1}{" * 300 + "2" + "}" * 301,
    "parentheses": r"\boxed{" + "(" * 400 + "104" + ")" * 400 + "}",
    "markers": "answer: " * 12_500,
    "unclosed tags": "<answer>" * 12_500,
    "blanks behind a marker": "the answer is" + " " * 100_000 + "x",
    "blanks in a marker": "answer" + " " * 50_000 + "to" + " " * 50_000,
    "blanks behind an or": r"\boxed{105} or " + " " * 100_000 + "x",
    "open thoughts": "<think>" * 14_000,
}


@pytest.fixture(scope="module")
def pool() -> Iterator[GradingPool]:
    with GradingPool(num_workers=2) as pool:
        yield pool


def test_verdicts_come_in_order(pool: GradingPool) -> None:
    questions = [(str(number % 7), "3") for number in range(60)]
    assert [verdict.same for verdict in pool.ask_all(questions)] == [number % 7 == 3 for number in range(60)]


def test_a_hanging_worker_is_killed_and_replaced() -> None:
    with GradingPool(num_workers=1) as pool:
        assert pool.ask_all([HALF])[0].same
        (worker,) = pool._workers
        first = worker.child
        assert first is not None
        (verdict,) = pool.ask_all([(HANGING, "5")])
        assert verdict.kind == "timeout" and not verdict.same
        assert pool.ask_all([HALF])[0].same
        assert worker.child not in (None, first)
        assert not psutil.pid_exists(first)


def test_many_hanging_answers_share_one_loss_of_time_and_leave_the_others_graded() -> None:
    with GradingPool(num_workers=2) as pool:
        verdicts = pool.ask_all([(HANGING, "5"), HALF] * 40)
    assert {verdict.kind for verdict in verdicts[::2]} == {"timeout"}
    assert all(verdict.same for verdict in verdicts[1::2])
    # some were tried; once the batch's time was used up the others were not
    tried = [verdict for verdict in verdicts[::2] if "replaced" in verdict.error]
    assert 2 <= len(tried) < 40
    assert {verdict.error for verdict in verdicts[::2] if verdict not in tried} == {
        "no verdict: slow answers used up the time of their batch"
    }


def test_a_gold_gets_more_patience_than_an_answer() -> None:
    with GradingPool(num_workers=1, timeout_seconds=0.001, batch_seconds=0.002) as pool:
        slow = (r"(x+1)^{30}(x-1)^{30} - (x^2-1)^{30}", "0")
        assert pool.ask_all([slow])[0].kind == "timeout"
        assert pool.ask_all([slow], patience=60_000.0)[0].same


def test_a_worker_that_dies_is_replaced_whole(pool: GradingPool) -> None:
    assert pool.ask_all([HALF])[0].same
    for worker in pool._workers:
        if worker._process is not None:
            worker._process.kill()
            worker._process.wait()
    assert [verdict.same for verdict in pool.ask_all([HALF] * 4)] == [True] * 4


def test_a_child_killed_while_it_works_is_a_grader_error_not_a_wrong_answer() -> None:
    with GradingPool(num_workers=1, timeout_seconds=60.0, batch_seconds=120.0) as pool:
        assert pool.ask_all([HALF])[0].same
        child = pool._workers[0].child
        assert child is not None
        killer = threading.Timer(0.3, os.kill, (child, signal.SIGKILL))
        killer.start()
        (verdict,) = pool.ask_all([(HANGING, "5")])
        killer.join()
        assert verdict.kind == "grader" and "replaced" in verdict.error
        assert pool.ask_all([HALF])[0].same


def test_a_question_that_a_killed_child_never_read_is_not_put_to_the_next_one() -> None:
    with GradingPool(num_workers=1) as pool:
        assert pool.ask_all([HALF])[0].same
        (worker,) = pool._workers
        assert worker.child is not None
        os.kill(worker.child, signal.SIGSTOP)  # as if others held the processors all the time
        assert pool.ask_all([(HANGING, "5")])[0].kind == "timeout"
        assert [verdict.same for verdict in pool.ask_all([HALF, ("7", "8")])] == [True, False]


def test_the_address_space_limit_is_in_force() -> None:
    with (
        GradingPool(num_workers=1, address_space_bytes=48 * 1024**2) as pool,
        pytest.raises(GraderError, match="did not come up"),
    ):
        pool.ask_all([HALF])


def test_workers_do_not_see_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "not for workers")
    with GradingPool(num_workers=1) as pool:
        pool.ask_all([HALF])
        process = pool._workers[0]._process
        assert process is not None
        assert "HF_TOKEN" not in psutil.Process(process.pid).environ()


@pytest.mark.timeout(
    15
)  # a guard: what is linear takes milliseconds, what is quadratic here some twenty seconds
@pytest.mark.parametrize("name", POISONS)
def test_poison_is_never_right(name: str, pool: GradingPool) -> None:
    items = [GradeItem(POISONS[name], "104")]
    assert grade_batch(items, "math", pool)[0].status in ("wrong", "no_answer", "grader_error")
    assert grade_batch(items, "aime")[0].status in ("wrong", "no_answer")
    assert grade(POISONS[name], "C", "gpqa").status in ("wrong", "no_answer")


def test_no_known_poison_reaches_the_algebra(pool: GradingPool) -> None:
    grades = grade_batch([(poison, "104") for poison in POISONS.values()], "math", pool)
    assert [name for name, found in zip(POISONS, grades, strict=True) if found.status == "grader_error"] == []
    assert costly(HANGING) and not costly(r"e^{x^{2}} + 2^{10} + 5! + (n+1)!")


def test_a_poison_that_slips_through_is_a_grader_error_beside_good_grades(pool: GradingPool) -> None:
    slipping = r"\boxed{(x+1)^{4000}(x-1)^{4000} - (x^2-1)^{4000} + 104}"
    assert not costly(slipping)
    good = GradeItem(r"\boxed{\frac{3}{6}}", "0.5")
    grades = grade_batch([good, GradeItem(slipping, "104+x"), good], "math", pool)
    assert grades[0] == grades[2] == Grade("right", r"\frac{3}{6}")
    assert grades[1].status in ("wrong", "grader_error")


def test_forty_poisons_of_an_unknown_shape_do_not_cost_the_good_answers_their_grades(
    pool: GradingPool,
) -> None:
    unknown = [rf"\boxed{{\sqrt{{{n}+\sqrt{{x^{{99}}+{n}}}}}^{{501}}(x+{n})^{{1999}}}}" for n in range(1, 41)]
    assert not any(map(costly, unknown))
    good = GradeItem(r"\boxed{\frac{3}{6}}", "0.5")
    items = [item for poison in unknown for item in (GradeItem(poison, "104+x"), good)]
    grades = grade_batch(items, "math", pool)
    assert {found.status for found in grades[::2]} == {"grader_error"}
    assert {found.status for found in grades[1::2]} == {"right"}


def test_works_from_many_threads_at_once(pool: GradingPool) -> None:
    def batch(number: int) -> list[str]:
        items = [(rf"\boxed{{\frac{{{number}}}{{{2 * other}}}}}", "0.5") for other in range(1, 6)]
        return [found.status for found in grade_batch(items, "math", pool)]

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(batch, range(1, 6)))
    assert results == [
        ["right" if other == number else "wrong" for other in range(1, 6)] for number in range(1, 6)
    ]


def test_works_from_asyncio(pool: GradingPool) -> None:
    async def main() -> list[Grade]:
        items = [GradeItem(r"\boxed{2^{-1}}", "0.5")]
        results = await asyncio.gather(
            *(asyncio.to_thread(grade_batch, items, "math", pool) for _ in range(4)),
            asyncio.to_thread(grade_batch, [(r"\boxed{7}", "7")], "aime"),
        )
        return [found for grades in results for found in grades]

    assert [found.status for found in asyncio.run(main())] == ["right"] * 5


def test_works_in_a_thread_without_a_pool_of_its_own() -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(grade, r"\boxed{2^{-1}}", "0.5", "math").result().status == "right"


@pytest.mark.slow
def test_works_in_a_ray_worker(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "grade_in_ray.py"
    script.write_text(
        "import ray\n"
        "from vcppo.grading import grade_batch\n"
        "ray.init(num_cpus=1, include_dashboard=False)\n"
        "task = ray.remote(lambda: [g.status for g in grade_batch([(r'\\boxed{2^{-1}}', '0.5')], 'math')])\n"
        "print(ray.get(task.remote()))\n"
    )
    result = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "['right']" in result.stdout, result.stderr[-2000:]


def test_workers_end_with_a_parent_that_was_killed(root: Path) -> None:
    code = (
        "from vcppo.grading.pool import GradingPool; import time\n"
        "pool = GradingPool(num_workers=1); pool.ask_all([('1', '1')])\n"
        "print(pool._workers[0]._process.pid, pool._workers[0].child, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2 and all(psutil.pid_exists(pid) for pid in workers)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(200):
        if not any(_runs(pid) for pid in workers):
            return
        time.sleep(0.1)
    pytest.fail(f"workers {workers} outlived their parent")


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_closed_pool_says_so() -> None:
    pool = GradingPool(num_workers=1)
    pool.close()
    with pytest.raises(GraderError, match="closed"):
        pool.ask_all([HALF])


@pytest.mark.parametrize(("num_workers", "timeout_seconds"), [(0, 1.0), (1, 0.0)])
def test_limits_must_be_positive(num_workers: int, timeout_seconds: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        GradingPool(num_workers=num_workers, timeout_seconds=timeout_seconds)
