"""Stage evaluate: which questions it asks, how often and in which order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tasks.evaluation.benchmarks import DECLARATIONS, declaration_of, resolve
from tasks.evaluation.options import asked, requests_in_any_order
from tasks.sources.multiple_choice import LETTERS, render
from training.generation.prompts import Problem
from vcppo.config import Config, load_profile, profile_names
from vcppo.errors import ConfigurationError, DataError

TRAINING = {
    "kind": "running_sum", "name": "sums", "use": "train", "num_problems": 8, "num_digits": 4,
}  # fmt: skip


# --- benchmarks ------------------------------------------------------------------------------------------


def configured(sources: Sequence[Mapping[str, Any]], **evaluate: Any) -> Config:
    values = load_profile("tiny").model_dump(mode="json")
    values["data"]["sources"] = [TRAINING, *sources]
    values["evaluate"] = {"pass_at": [1], **evaluate}
    return Config.model_validate(values)


def local(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "file", "name": name, "path": "x.jsonl", "sha256": "0" * 64, "use": "eval", **more}


def problems(source: str, count: int, grader: str = "aime") -> list[Problem]:
    prompt = ({"role": "user", "content": "What?"},)
    return [Problem(f"{source}/{i}", source, grader, prompt, "1", text="What?") for i in range(count)]


def gpqa_problem(number: int = 0) -> Problem:
    options = tuple(f"option {letter} of {number}" for letter in "wxyz")
    content = f"Think.\n\n{render('Which?', options)}\n\nBox it."
    return Problem(
        f"gpqa/{number}", "gpqa", "gpqa", ({"role": "user", "content": content},), "C", "Which?", options
    )


def test_declared_defaults_hold_until_the_configuration_says_otherwise() -> None:
    sources = [
        local("aime24", dataset="aime_2024"),
        local("math", dataset="math_500", grader="math"),
        local("own"),
    ]
    rows = problems("aime24", 5) + problems("math", 5, "math") + problems("own", 5)
    aime, math, own = resolve(configured(sources), rows)
    assert (aime.samples_per_problem, math.samples_per_problem, own.samples_per_problem) == (32, 4, 32)
    aime, math, own = resolve(configured(sources, samples_per_problem=2, max_response_tokens=7), rows)
    assert {b.samples_per_problem for b in (aime, math, own)} == {2} and own.max_response_tokens == 7
    override = {
        "name": "math",
        "samples_per_problem": 8,
        "pass_at": [8],
        "max_problems": 3,
        "sampling": {"temperature": 0.6},
        "prompt_template": "Box it. {problem}",
        "max_parser_failure_rate": None,
    }
    aime, math, own = resolve(configured(sources, samples_per_problem=4, benchmarks=[override]), rows)
    assert (math.samples_per_problem, math.pass_at, len(math.problems)) == (8, (8,), 3)
    assert math.sampling.temperature == 0.6 and own.sampling.temperature == 1.0
    assert math.problems[0].messages[-1]["content"] == "Box it. What?"
    assert math.max_parser_failure_rate is None and own.max_parser_failure_rate == 0.02
    assert (aime.samples_per_problem, aime.pass_at, len(aime.problems)) == (4, (1,), 5)


def test_k_of_pass_at_k_above_a_benchmarks_samples_is_left_out_there() -> None:
    config = configured(
        [local("a"), local("b")],
        pass_at=[1, 32],
        samples_per_problem=32,
        benchmarks=[{"name": "b", "samples_per_problem": 4}],
    )
    assert [b.pass_at for b in resolve(config, problems("a", 3) + problems("b", 3))] == [(1, 32), (1,)]


@pytest.mark.parametrize(
    ("sources", "evaluate", "message"),
    [
        ([local("a")], {"benchmarks": [{"name": "aime"}]}, "evaluate.benchmarks: got aime, allowed are a"),
        ([local("a")], {"promotion": {"benchmarks": ["x"]}}, "evaluate.promotion.benchmarks: got x"),
        ([local("a", dataset="gpqa")], {}, "benchmark a is graded by gpqa, got grader 'aime'"),
        (
            [local("a")],
            {"samples_per_problem": 4, "benchmarks": [{"name": "a", "pass_at": [8]}]},
            "pass_at [8] of a exceed its 4 samples",
        ),
    ],
)
def test_a_benchmark_that_cannot_be_what_is_asked_is_refused(
    sources: list[dict[str, Any]], evaluate: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        resolve(configured(sources, **evaluate), problems("a", 3))


@pytest.mark.parametrize("count", [0, 1])
def test_an_empty_benchmark_is_named_not_left_out(count: int) -> None:
    config = configured([local("a"), local("b")])
    with pytest.raises(DataError, match=f"benchmark b: has {count} problems"):
        resolve(config, problems("a", 3) + problems("b", count))


def test_every_evaluation_source_of_a_shipped_profile_is_a_declared_benchmark() -> None:
    samples = {}
    for name in profile_names():
        config = load_profile(name)
        for source in config.data.sources:
            if source.use == "train":
                continue
            assert declaration_of(source) in DECLARATIONS.values(), source.name
            samples[name] = resolve(config, [p for s in config.data.sources for p in problems(s.name, 2)])
    assert {b.samples_per_problem for b in samples["vcppo-32b"]} == {32}
    assert {b.samples_per_problem for b in samples["tiny"]} == {4}
    assert {b.max_parser_failure_rate for b in samples["smollm2-135m"]} == {None}


def test_options_are_ordered_by_seed_problem_and_sample_and_the_gold_letter_follows() -> None:
    problem = gpqa_problem()
    gold_text = problem.options[LETTERS.index(problem.gold)]
    requests = requests_in_any_order(1)(problem, 32)
    assert requests == requests_in_any_order(1)(problem, 32)
    assert requests[:8] == requests_in_any_order(1)(problem, 8), "more samples must not change the first"
    assert [r.permutation for r in requests] != [r.permutation for r in requests_in_any_order(2)(problem, 32)]
    assert len({r.permutation for r in requests}) > 10
    for request in requests:
        assert request.permutation is not None
        shown = request.messages[-1]["content"]
        assert f"({request.gold}) {gold_text}" in shown
        assert shown.startswith("Think.\n\nWhich?") and shown.endswith("\n\nBox it.")
        assert [problem.options[i] for i in request.permutation] == re.findall(
            r"^\([A-D]\) (.*)$", shown, re.M
        )


def test_gold_letters_are_near_uniform() -> None:
    draw = requests_in_any_order(1)
    golds = Counter(request.gold for number in range(198) for request in draw(gpqa_problem(number), 8))
    expected = sum(golds.values()) / 4
    chi_square = sum((golds[letter] - expected) ** 2 / expected for letter in LETTERS)
    assert chi_square < 16.27, golds  # p = 0.001 with 3 degrees of freedom


def test_a_template_of_ones_own_keeps_the_options_permutable() -> None:
    problem = asked(gpqa_problem(), "Letter only. {problem}")
    (request,) = requests_in_any_order(1)(problem, 1)
    assert request.messages[-1]["content"].startswith("Letter only. Which?")


def test_a_prompt_without_its_options_is_refused() -> None:
    from dataclasses import replace

    problem = replace(gpqa_problem(), messages=({"role": "user", "content": "Which?"},))
    with pytest.raises(DataError, match="gpqa/0: its prompt does not show its options"):
        requests_in_any_order(1)(problem, 1)
