"""One training and one evaluation set that share nothing: near-duplicates, benchmarks, figures, balance."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tasks.sources.assembly import Assembled, assemble
from tasks.sources.cleaning import Gold, clean
from tasks.sources.contamination import BenchmarkIndex
from tasks.sources.ledger import Ledger
from tasks.sources.mixture import balanced
from tasks.sources.problem import Problem
from tasks.sources.words import words
from vcppo.config import DataConfig
from vcppo.config.sources import FileSource
from vcppo.errors import DataError

TRIPLES = (
    "Let $S$ be the set of triples $(a,b,c)$ of non-negative integers such that $a+b+c$ is even. The "
    "value of the sum\n"
    "\\[ \\sum_{(a,b,c) \\in S} \\frac{1}{2^a 3^b 5^c} \\]\ncan be expressed as $\\frac{m}{n}$, where $m$ "
    "and $n$ are "
    "relatively prime positive integers. Compute $m+n$."
)
REWORDED = (
    "Let $S$ be the set of triples $(a,b,c)$ of non-negative integers such that $a+b+c$ is even. "
    "Determine the value of "
    "the sum:\n\\[\n\\sum_{(a,b,c)\\in S}\\frac{1}{2^a3^b5^c}\n\\]\nThis sum can be expressed as "
    "$\\frac{m}{n}$, where "
    "$m$ and $n$ are relatively prime positive integers. Compute $m+n$."
)


def file(name: str, **values: Any) -> dict[str, Any]:
    return {"kind": "file", "name": name, "path": f"{name}.jsonl", "sha256": "0" * 64, **values}


def config(*sources: dict[str, Any], **values: Any) -> DataConfig:
    return DataConfig.model_validate(
        {"sources": sources, "max_prompt_tokens": 9, "max_response_tokens": 9, **values}
    )


def golds(source: str, *texts_and_golds: tuple[str, str]) -> list[Gold]:
    return [
        Gold(Problem(f"{source}/{i}", text, gold, f"row {i}"), gold)
        for i, (text, gold) in enumerate(texts_and_golds)
    ]


def run(data: DataConfig, clean: dict[str, list[Gold]]) -> tuple[Assembled, dict[str, Ledger]]:
    ledgers = {name: Ledger(rows_in=len(problems)) for name, problems in clean.items()}
    return assemble(clean, data, ledgers, lambda done, total, what: None), ledgers


def ids(placed: list[Any]) -> set[str]:
    return {gold.problem.id for _, gold in placed}


BENCHMARK = file("bench", use="eval")
OTHER = ("An unrelated question about seven ducks and nothing else at all, however long it may be?", "7")


def test_a_reworded_problem_is_dropped_with_the_one_that_stays_named() -> None:
    data = config(file("pool", use="train"), BENCHMARK)
    assembled, ledgers = run(
        data, {"pool": golds("pool", (TRIPLES, "37"), (REWORDED, "37")), "bench": golds("bench", OTHER)}
    )
    assert ids(assembled.train) == {"pool/0"}
    (entry,) = ledgers["pool"].listed
    assert (entry["reason"], entry["id"], entry["stays"]) == ("near_duplicate", "pool/1", "pool/0")
    assert 0.8 < entry["similarity"] < 0.9


@pytest.mark.parametrize(
    ("other", "gold"),
    [
        (TRIPLES.replace("3^b", "7^b"), "37"),
        (TRIPLES.replace("a+b+c", "a-b+c"), "37"),
        (REWORDED, "38"),
    ],
)
def test_another_number_operator_or_gold_makes_another_problem(other: str, gold: str) -> None:
    data = config(file("pool", use="train"), BENCHMARK)
    assembled, _ = run(
        data, {"pool": golds("pool", (TRIPLES, "37"), (other, gold)), "bench": golds("bench", OTHER)}
    )
    assert ids(assembled.train) == {"pool/0", "pool/1"}


def test_a_prompt_to_which_two_sources_give_different_golds_is_dropped_from_both_and_listed() -> None:
    data = config(file("one", use="train"), file("two", use="split", eval_count=1), BENCHMARK)
    assembled, ledgers = run(
        data,
        {
            "one": golds("one", (TRIPLES, "37"), ("Compute 1+1.", "2")),
            "two": golds("two", (TRIPLES, "38"), ("Compute 1+1.", "2"), OTHER, ("Compute 2*3.", "6")),
            "bench": golds("bench", ("What is nine times nine?", "81")),
        },
    )
    assert ids(assembled.train) | ids(assembled.evaluation) == {"one/1", "two/2", "two/3", "bench/0"}
    for name in ("one", "two"):
        assert {
            "reason": "conflicting_gold",
            "id": f"{name}/0",
            "golds": ["37", "38"],
            "where": ["row 0"] * 2,
        } in (ledgers[name].listed)
    assert ledgers["two"].removed["duplicate_of_other_source"] == 1


@pytest.mark.parametrize(("grader", "kept"), [("math", {"one/0"}), ("aime", set())])
def test_golds_of_one_value_are_no_conflict(grader: str, kept: set[str]) -> None:
    data = config(file("one", use="train", grader=grader), file("two", use="train", grader=grader), BENCHMARK)
    assembled, _ = run(
        data,
        {
            "one": golds("one", (TRIPLES, "\\frac{1}{2}")),
            "two": golds("two", (TRIPLES, "0.5")),
            "bench": golds("bench", OTHER),
        },
    )
    assert ids(assembled.train) == kept


def test_a_problem_to_which_two_benchmarks_give_different_golds_is_dropped_everywhere_and_listed() -> None:
    data = config(file("pool", use="train"), BENCHMARK, file("second", use="eval"))
    assembled, ledgers = run(
        data,
        {
            "pool": golds("pool", (TRIPLES, "5"), ("Compute 1+1.", "2")),
            "bench": golds("bench", OTHER, (TRIPLES, "5")),
            "second": golds("second", (TRIPLES, "6")),
        },
    )
    assert (ids(assembled.train), ids(assembled.evaluation)) == ({"pool/1"}, {"bench/0"})
    for name, id_ in (("bench", "bench/1"), ("second", "second/0"), ("pool", "pool/0")):
        (entry,) = ledgers[name].listed
        assert (entry["reason"], entry["id"]) == ("conflicting_gold", id_)
        assert (entry["golds"], entry["where"]) == (["5", "6", "5"], ["row 1", "row 0", "row 0"])


def test_a_problem_that_two_benchmarks_share_with_one_gold_stays_with_the_first() -> None:
    data = config(BENCHMARK, file("second", use="eval"), file("pool", use="train"))
    assembled, ledgers = run(
        data,
        {
            "bench": golds("bench", (TRIPLES, "37")),
            "second": golds("second", (TRIPLES, "37"), OTHER),
            "pool": golds("pool", ("Compute 1+1.", "2")),
        },
    )
    assert ids(assembled.evaluation) == {"bench/0", "second/1"}
    assert dict(ledgers["second"].removed) == {"duplicate_of_other_source": 1}


SQUARE = ("What is the square of $x$, if $x = 2^{10}$?", "What is the square of x, if \\(x=2^10\\)?")


@pytest.mark.parametrize("use", ["train", "eval"])
def test_layout_alone_does_not_make_two_problems_of_one_with_two_golds(use: str) -> None:
    data = config(file("own", use=use), file("pool", use="train"), BENCHMARK)
    assembled, ledgers = run(
        data,
        {
            "own": golds("own", (SQUARE[0], "1"), (SQUARE[1], "2"), ("What is two and two?", "4")),
            "pool": golds("pool", ("Compute 1+1.", "2")),
            "bench": golds("bench", OTHER),
        },
    )
    assert ids(assembled.train) | ids(assembled.evaluation) == {"own/2", "pool/0", "bench/0"}
    assert [(entry["id"], entry["golds"]) for entry in ledgers["own"].listed] == [
        ("own/0", ["1", "2"]),
        ("own/1", ["1", "2"]),
    ]


def test_near_duplicates_agree_in_the_value_of_their_golds_not_in_its_spelling() -> None:
    data = config(file("pool", use="train", grader="math"), BENCHMARK)
    other = golds("bench", OTHER)
    for gold, kept in (("0.5", {"pool/0"}), ("0.6", {"pool/0", "pool/1"})):
        pool = golds("pool", (TRIPLES, "\\frac12"), (REWORDED, gold))
        assembled, _ = run(data, {"pool": pool, "bench": other})
        assert ids(assembled.train) == kept


def test_two_publishers_of_one_multiple_choice_problem_agree_whatever_letters_they_show() -> None:
    data = config(
        file("one", use="eval", grader="gpqa"),
        file("two", use="eval", grader="gpqa"),
        file("pool", use="train"),
    )
    one = Problem("one/0", "Which?", "A", "row 1", options=("w", "x", "y", "z"))
    two = Problem("two/0", "Which?", "B", "row 1", options=("x", "w", "y", "z"))
    assembled, ledgers = run(
        data, {"one": [Gold(one, "A")], "two": [Gold(two, "B")], "pool": golds("pool", OTHER)}
    )
    assert ids(assembled.evaluation) == {"one/0"}
    assert dict(ledgers["two"].removed) == {"duplicate_of_other_source": 1}


def test_a_benchmark_keeps_its_problem_whatever_gold_a_training_source_gives_it() -> None:
    data = config(file("pool", use="train"), BENCHMARK)
    assembled, ledgers = run(
        data, {"pool": golds("pool", (TRIPLES, "38"), OTHER), "bench": golds("bench", (TRIPLES, "37"))}
    )
    assert (ids(assembled.train), ids(assembled.evaluation)) == ({"pool/1"}, {"bench/0"})
    assert ledgers["pool"].removed == {"conflicting_gold": 1}
    (entry,) = ledgers["pool"].listed
    assert (entry["golds"], entry["where"]) == (["37", "38"], ["row 0", "row 0"])


def test_the_search_for_near_duplicates_can_be_turned_off() -> None:
    data = config(file("pool", use="train"), BENCHMARK, near_duplicate_similarity=None)
    assembled, _ = run(
        data, {"pool": golds("pool", (TRIPLES, "37"), (REWORDED, "37")), "bench": golds("bench", OTHER)}
    )
    assert len(assembled.train) == 2


def test_a_training_problem_of_a_benchmark_is_dropped_and_the_pair_listed() -> None:
    data = config(file("pool", use="train"), BENCHMARK)
    assembled, ledgers = run(
        data, {"pool": golds("pool", (REWORDED, "37"), OTHER), "bench": golds("bench", (TRIPLES, "37"))}
    )
    assert ids(assembled.train) == {"pool/1"}
    assert ids(assembled.evaluation) == {"bench/0"}
    (entry,) = ledgers["pool"].listed
    assert (entry["reason"], entry["id"], entry["benchmark_id"]) == ("benchmark_overlap", "pool/0", "bench/0")
    assert 0.5 <= entry["coverage"] < 1


def test_held_out_problems_are_benchmarks_too() -> None:
    data = config(file("pool", use="split", eval_count=1), near_duplicate_similarity=None)
    assembled, ledgers = run(data, {"pool": golds("pool", (TRIPLES, "37"), (REWORDED, "37"), OTHER)})
    assert ids(assembled.evaluation) < {"pool/0", "pool/1"}
    assert ids(assembled.train) == {"pool/2"}
    assert ledgers["pool"].removed["benchmark_overlap"] == 1


@pytest.mark.parametrize(
    ("text", "coverage"),
    [
        ("One two three four five six seven eight nine ten.", 1.0),
        ("ONE two, three four:  five six seven eight nine ten", 1.0),
        ("Read this: one two three four five six seven eight nine ten, and then stop.", 1.0),
        ("one two three four five six seven eight nine, and then a few words that are not there", 2 / 3),
        ("one two three four five six seven eight; and then other words altogether, for a change", None),
        ("one two three", None),
    ],
)
def test_coverage_is_the_shared_part_of_the_shorter_problem(text: str, coverage: float | None) -> None:
    index = BenchmarkIndex([("b", "one two three four five six seven eight nine ten")])
    overlap = index.overlap(text, 0.5)
    assert (overlap and overlap.coverage) == (coverage and pytest.approx(coverage))


def test_a_short_problem_is_compared_as_a_whole() -> None:
    index = BenchmarkIndex([("b", "What is 2 + 2?")])
    assert index.overlap("what is 2+2", None) is not None
    assert index.overlap("What is 2 - 2?", 0.5) is None


def test_words_keep_numbers_operators_and_signs_and_lose_layout() -> None:
    assert words(r"\left( $x$ \right) \le 1,000.5!") == ["(", "x", ")", "le", "1000.5", "!"]
    assert words("x - 1") != words("x + 1")
    assert words("求最大值") == list("求最大值")


def cleaned(**values: Any) -> tuple[list[str], Ledger]:
    ledger = Ledger()
    problems = [
        Problem("s/0", "In the diagram, find x.", "1", "row 1"),
        Problem("s/1", "Find y.", "why", "row 2"),
        Problem("s/2", "Find z.", "3", "row 3"),
    ]
    source = FileSource.model_validate(file("s", **values))
    return [gold.problem.id for gold in clean(source, problems, ledger)], ledger


def test_figures_are_dropped_from_training_sources_and_kept_in_benchmarks() -> None:
    kept, ledger = cleaned(use="train", unreadable_gold="drop")
    assert kept == ["s/2"]
    assert ledger.listed[0] == {"reason": "needs_figure", "id": "s/0", "marker": "In the diagram"}
    assert cleaned(use="eval", unreadable_gold="drop")[0] == ["s/0", "s/2"]
    assert cleaned(use="eval", unreadable_gold="drop", remove_figures=True)[0] == ["s/2"]


def test_unreadable_golds_stop_unless_they_may_be_dropped() -> None:
    with pytest.raises(DataError, match="row 2"):
        cleaned()
    _, ledger = cleaned(unreadable_gold="drop")
    assert ledger.removed["unreadable_gold"] == 1
    assert "row 2" in ledger.listed[-1]["message"]


@pytest.mark.parametrize(
    ("sizes", "share", "kept"),
    [
        ({"a": 100, "b": 10}, 0.5, {"a": 10, "b": 10}),
        ({"a": 100, "b": 10}, 0.75, {"a": 30, "b": 10}),
        ({"a": 100, "b": 60, "c": 20}, 0.5, {"a": 80, "b": 60, "c": 20}),
        ({"a": 5, "b": 5}, 0.5, {"a": 5, "b": 5}),
        ({"a": 7}, 1.0, {"a": 7}),
    ],
)
def test_balance_keeps_as_much_as_the_share_allows(
    sizes: dict[str, int], share: float, kept: dict[str, int]
) -> None:
    assert balanced(sizes, share) == kept


def test_a_share_that_nothing_can_keep_is_an_error() -> None:
    with pytest.raises(DataError, match="no mixture"):
        balanced({"a": 9}, 0.5)
    with pytest.raises(ValidationError, match=r"max_source_share 0\.4 cannot be kept by 2 training sources"):
        config(file("a", use="train"), file("b", use="train"), max_source_share=0.4)


def test_the_surplus_of_a_large_source_is_counted() -> None:
    data = config(file("large", use="train"), file("small", use="train"), BENCHMARK, max_source_share=0.5)
    many = golds("large", *((f"Problem number {i} of the large source", str(i)) for i in range(9)))
    few = golds("small", *((f"Small {i}", str(i)) for i in range(3)))
    assembled, ledgers = run(data, {"large": many, "small": few, "bench": golds("bench", OTHER)})
    assert len(assembled.train) == 6
    assert dict(ledgers["large"].removed) == {"over_source_share": 6}
