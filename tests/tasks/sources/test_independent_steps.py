"""The second synthetic task: a function of its seed; its traces slip where and as often as they should."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pydantic import ValidationError

from tasks.sources.assembly import Placed
from tasks.sources.cleaning import Gold
from tasks.sources.independent_steps import draw_trace, read, uncertain_cells
from tasks.sources.tables import sft_table
from vcppo.config import load_profile
from vcppo.config.sources import IndependentStepsSource
from vcppo.errors import DataError
from vcppo.grading import grade


def source(**values: object) -> IndependentStepsSource:
    return IndependentStepsSource.model_validate({"name": "steps", "num_problems": 200, **values})


def steps_of(trace: str) -> list[tuple[int, int, str]]:
    """(first, second, result) of every step."""
    return [(int(trace[i + 1]), int(trace[i + 2]), trace[i + 3]) for i in range(0, len(trace), 4)]


class Scripted(random.Random):
    """A generator that gives the numbers it is told, of `random()` only."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def test_a_trace_follows_its_draws() -> None:
    # goes on; 3 and 7 in a certain cell; 1 and 2 in an uncertain one without a slip; 0 and 6 slip
    draws = (0.9, 0.35, 0.75, 0.15, 0.25, 0.5, 0.05, 0.65, 0.49)
    uncertain = frozenset({(1, 2), (0, 6)})
    some = source(num_steps=3, max_wrong=1)
    assert draw_trace(some, uncertain, Scripted(*draws)) == "a377b122c06?"
    digits = source(num_steps=3, max_wrong=1, slips="wrong_digit")
    assert draw_trace(digits, uncertain, Scripted(*draws, 0.15)) == "a377b122c068"
    assert draw_trace(digits, uncertain, Scripted(*draws, 0.99)) == "a377b122c065"


def test_a_trace_that_quits_has_done_at_least_one_step_and_never_all() -> None:
    assert draw_trace(source(num_steps=3, max_wrong=1), frozenset(), Scripted(0.0, 0.0, 0.3, 0.7)) == "a377"
    some = source(early_stop_fraction=1.0, num_problems=500, num_steps=8)
    assert {len(t) // 4 for p in read(some, seed=1) for t in p.traces} == set(range(1, 8))


def test_the_same_seed_gives_the_same_problems_and_another_seed_others() -> None:
    first = list(read(source(), seed=1))
    assert first == list(read(source(), seed=1))
    other = list(read(source(), seed=2))
    assert len({p.text for p in first} & {p.text for p in other}) < 5
    assert not {t for p in first for t in p.traces} & {t for p in other for t in p.traces}
    assert uncertain_cells(source(), 1) != uncertain_cells(source(), 2)


def test_the_generator_gives_these_very_problems() -> None:
    """Pinned: a change here changes every result of the independent-steps profile."""
    problem = next(read(source(), seed=1))
    assert problem.id == "steps/a688087930c34ff7"
    assert problem.text == "652746"
    assert problem.answer == "40 steps, at most 7 wrong"
    assert problem.traces[0].startswith("a699b677c133d838e077")


def test_more_problems_begin_with_the_fewer() -> None:
    few = list(read(source(num_problems=50), seed=1))
    assert list(read(source(num_problems=200), seed=1))[:50] == few


def test_problems_are_unique_even_when_all_possible_ones_are_asked_for() -> None:
    problems = list(read(source(num_problems=100, prompt_digits=2), seed=1))
    assert len({p.text for p in problems}) == len({p.id for p in problems}) == 100


def test_more_problems_than_there_are_is_an_error_that_says_how_many_there_are() -> None:
    with pytest.raises(DataError, match=r"num_problems is 101, but 2 digits make only 100"):
        list(read(source(num_problems=101, prompt_digits=2), seed=1))


def test_nothing_that_could_not_be_wrong_is_configured() -> None:
    with pytest.raises(ValidationError, match=r"max_wrong \(40\) must be below num_steps \(40\)"):
        source(max_wrong=40)


@pytest.mark.parametrize("slips", ["left_open", "wrong_digit"])
def test_traces_slip_half_of_the_time_in_the_uncertain_cells_and_never_elsewhere(slips: str) -> None:
    some = source(num_problems=1000, slips=slips)
    uncertain = uncertain_cells(some, 1)
    assert len(uncertain) == 40
    written: Counter[str] = Counter()
    cells: Counter[bool] = Counter()
    for problem in read(some, seed=1):
        for first, second, result in steps_of(problem.traces[0]):
            inside = (first, second) in uncertain
            cells[inside] += 1
            assert inside or result == str(max(first, second))
            if inside:
                written[result if result == "?" else str((int(result) - max(first, second)) % 10)] += 1
    assert cells[True] / cells.total() == pytest.approx(0.4, abs=0.01)
    assert written.pop("0") / cells[True] == pytest.approx(0.5, abs=0.015)
    expected = "?" if slips == "left_open" else "123456789"
    assert set(written) == set(expected)
    for count in written.values():
        assert count / cells[True] == pytest.approx(0.5 / len(expected), abs=0.015)


def test_a_whole_trace_has_eight_slips_and_is_right_a_bit_less_than_half_of_the_time() -> None:
    some = source(num_problems=2000, early_stop_fraction=0.0)
    problems = list(read(some, seed=1))
    slips = [sum(str(max(a, b)) != c for a, b, c in steps_of(p.traces[0])) for p in problems]
    assert sum(slips) / len(slips) == pytest.approx(8.0, abs=0.2)
    right = [grade(p.traces[0], p.answer, "steps").status == "right" for p in problems]
    # P(at most 7 of 40 at 0.2 each) = 0.437
    assert sum(right) / len(right) == pytest.approx(0.437, abs=0.035)


def test_a_trace_that_quits_is_wrong() -> None:
    problems = list(read(source(early_stop_fraction=1.0, slip_rate=0.0), seed=1))
    assert {grade(p.traces[0], p.answer, "steps").status for p in problems} == {"wrong"}


def test_traces_are_imitated_as_they_are_without_a_box() -> None:
    some = source(num_problems=3)
    problems = list(read(some, seed=1))
    placed: list[Placed] = [(some, Gold(problem, problem.answer)) for problem in problems]
    data = load_profile("tiny").data
    assert sft_table(placed, data).column("response").to_pylist() == [p.traces[0] for p in problems]
