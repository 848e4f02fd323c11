"""The synthetic task: a function of its seed, and what its text says is true."""

from __future__ import annotations

import re

import pytest

from tasks.sources.running_sum import ALPHABET, read, write_problem, write_trace
from vcppo.config.sources import SyntheticSource
from vcppo.errors import DataError


def source(**values: object) -> SyntheticSource:
    return SyntheticSource.model_validate({"name": "sums", "num_problems": 200, **values})


def test_a_problem_and_its_trace_are_written_as_the_module_says() -> None:
    assert write_problem([3, 9, 4]) == "3a9b4c"
    assert write_trace([3, 9, 4], 5, 3) == "a3=3b9=2c4=1\\boxed{1}"
    assert write_trace([3, 9, 4], 5, 1) == "a3=3\\boxed{3}"
    assert write_trace([3, 9, 4], 5, 0) == "\\boxed{0}"


def test_the_same_seed_gives_the_same_problems_and_another_seed_others() -> None:
    first = list(read(source(), seed=1))
    assert first == list(read(source(), seed=1))
    assert not {p.text for p in first} & {p.text for p in read(source(), seed=2)}


def test_the_generator_gives_these_very_problems() -> None:
    """Pinned: a change here changes every result of the tiny profile."""
    problem = next(read(source(sft_traces_per_problem=1), seed=1))
    assert problem.id == "sums/fa39b346377f5151"
    assert problem.text == "3a8b6c5d1e2f1g0h5i6j3k0l0m1n5o4p8q7r7s1t"


def test_more_problems_begin_with_the_fewer() -> None:
    few = list(read(source(num_problems=50), seed=1))
    assert list(read(source(num_problems=200), seed=1))[:50] == few


def test_problems_are_unique_even_when_nearly_all_possible_ones_are_asked_for() -> None:
    problems = list(read(source(num_problems=100, num_digits=2), seed=1))
    assert len({p.text for p in problems}) == len({p.id for p in problems}) == 100


def test_more_problems_than_there_are_is_an_error_that_says_how_many_there_are() -> None:
    with pytest.raises(DataError, match=r"num_problems is 101, but 2 digits make only 100"):
        list(read(source(num_problems=101, num_digits=2), seed=1))


def test_answers_are_the_sum_of_the_digits() -> None:
    for problem in read(source(modulus=7), seed=3):
        assert int(problem.answer) == sum(map(int, problem.text[::2])) % 7


def test_half_of_the_traces_stop_early_and_are_right_once_in_modulus_times() -> None:
    problems = list(read(source(num_problems=2000, early_stop_fraction=0.5, modulus=5), seed=1))
    full = len(write_trace([1] * 20, 5, 20))
    early = [(p, t) for p in problems for t in p.traces if len(t) < full]
    assert 0.45 < len(early) / len(problems) < 0.55
    right = sum(t.endswith(f"\\boxed{{{p.answer}}}") for p, t in early) / len(early)
    assert 0.15 < right < 0.25
    steps = [t.count("=") for _, t in early]
    assert set(steps) == set(range(20))
    assert all(t.endswith(f"\\boxed{{{p.answer}}}") for p in problems for t in p.traces if len(t) == full)


def test_early_stopping_can_be_turned_off() -> None:
    traces = [t for p in read(source(early_stop_fraction=0.0), seed=1) for t in p.traces]
    assert {t.count("=") for t in traces} == {20}


def test_every_character_is_in_the_alphabet_and_the_tiny_profile_has_room() -> None:
    for problem in read(source(num_digits=60), seed=1):
        assert set(problem.text + "".join(problem.traces)) <= set(ALPHABET)
    for problem in read(source(), seed=1):
        assert len(problem.text) == 40
        assert all(
            len(t) <= 89 and re.fullmatch(r"([a-t]\d=[0-4])*\\boxed\{[0-4]\}", t) for t in problem.traces
        )
