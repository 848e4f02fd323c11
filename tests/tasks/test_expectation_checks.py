"""What the expectations look at: golds, letters, signs inside prompts, tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.stats

from tasks.expectations.golds import another_answer, gold_states, letter_p_value
from tasks.expectations.signs import answer_inside, language, option_state, template_state
from tasks.expectations.tokens import COMMON, count_tokens, frame_bytes, lost_of, most_tokens
from tasks.sources.catalogue import DAPO_TEMPLATES
from training.models import load_tokenizer
from vcppo.config import DataConfig, TinyModel, load_profile

if TYPE_CHECKING:
    pass

DATA: DataConfig = load_profile("tiny").data


@pytest.mark.parametrize(
    ("letters", "least", "most"),
    [
        ("ABCD" * 50, 1.0, 1.0),
        ("D" * 198, 0.0, 1e-9),
        ("A" * 60 + "B" * 50 + "C" * 45 + "D" * 43, 0.2, 0.4),
        ("", 1.0, 1.0),
    ],
)
def test_letters_that_are_always_the_same_are_improbable(letters: str, least: float, most: float) -> None:
    assert least <= letter_p_value(letters) <= most


def test_letter_p_value_is_the_chi_square_tail() -> None:
    counts = [60, 50, 45, 43]
    letters = "".join(letter * count for letter, count in zip("ABCD", counts, strict=True))
    assert letter_p_value(letters) == pytest.approx(scipy.stats.chisquare(counts).pvalue)


@pytest.mark.parametrize(
    ("gold", "grader", "state"),
    [
        ("42", "aime", ("canonical", "right", "wrong")),
        ("999", "aime", ("canonical", "right", "wrong")),
        ("042", "aime", ("should be 42", "right", "wrong")),
        ("many", "aime", ("unreadable", "not graded", "not graded")),
        ("D", "gpqa", ("canonical", "right", "wrong")),
        (r"\frac{1}{2}", "math", ("canonical", "right", "wrong")),
        ("40 steps, at most 7 wrong", "steps", ("canonical", "right", "wrong")),
        ("40 steps, 7 wrong", "steps", ("unreadable", "not graded", "not graded")),
    ],
)
def test_the_grader_accepts_the_gold_answer_and_refuses_the_next(
    gold: str, grader: str, state: tuple[str, str, str]
) -> None:
    found = gold_states([(gold, grader)] * 3)
    assert list(found) == [(gold, grader)]
    assert tuple(part.split(":")[0] for part in found[gold, grader]) == state


def test_another_answer_stays_within_the_benchmark() -> None:
    assert another_answer("999", "aime") == "0"
    assert another_answer("D", "gpqa") == "A"
    assert another_answer("-3", "math") == "-2"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Find x.", "en"),
        ("求所有实数 x 使得 f(x)=0", "zh"),
        ("Найдите x", "other"),
        ("Soit n un entier naturel né", "en"),
        ("1+1=?", "en"),
    ],
)
def test_language_is_told_by_script(text: str, name: str) -> None:
    assert language(text) == name


def test_an_answer_inside_a_prompt_is_seen() -> None:
    trace = "Because two and two make four, and nothing else will do."
    assert answer_inside("Compute 2+2.", [trace]) == "none"
    assert answer_inside("Compute 2+2. \\boxed{4}", []) == "\\boxed"
    assert answer_inside(f"Compute 2+2. {trace}", [trace]) == "solution"
    assert answer_inside("Compute 2+2.\n#### 4", []).startswith("####")
    assert answer_inside("Give the answer as a fraction.", []) == "none"


def test_a_template_must_stand_around_the_problem_once() -> None:
    template = "{problem}\n\nPut the answer in \\boxed{}."
    around = template.replace("{problem}", "Compute.")
    assert template_state(around, "Compute.", template) == "once"
    assert template_state("Compute.", "Compute.", template) == "not this template"
    assert template_state(template.replace("{problem}", around), around, template) == "repeated"
    foreign = DAPO_TEMPLATES[0].prefix + "Compute."
    assert (
        template_state(template.replace("{problem}", foreign), foreign, template) == "another template inside"
    )


def test_options_must_be_four_and_distinct() -> None:
    assert option_state(["a", "b", "c", "d"], "gpqa") == "four distinct"
    assert option_state(["a", "A ", "c", "d"], "gpqa") == "4 options, 3 distinct"
    assert option_state([], "gpqa") == "0 options, 0 distinct"
    assert option_state([], "aime") == "no choice"


def prompt(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_prompt_length_counts_the_chat_template() -> None:
    tokenizer = load_tokenizer(TinyModel())
    prompts = [prompt("3a9b"), prompt("3a9b4c")]
    lengths = count_tokens(prompts, tokenizer)
    assert lengths == [
        len(tokenizer.apply_chat_template(p, add_generation_prompt=True, return_dict=False)) for p in prompts
    ]
    assert lengths[1] - lengths[0] == 2
    assert lengths[0] > 4


@pytest.mark.parametrize("text", ["ab", "a" * 60, "é" * 20, ""])
def test_a_prompt_has_no_more_tokens_than_its_bytes_allow(text: str) -> None:
    tokenizer = load_tokenizer(TinyModel())
    (count,) = count_tokens([prompt(text)], tokenizer)
    (most,) = most_tokens(np.array([len(text.encode())]), frame_bytes(prompt(text), tokenizer))
    assert count <= most


def test_a_character_is_lost_only_if_the_tokenizer_cannot_express_it() -> None:
    tokenizer = load_tokenizer(TinyModel())
    assert lost_of("aZ0 \n~€\t\u0301", tokenizer) == {"€", "\t", "\u0301"}
    assert set(COMMON) - lost_of(COMMON, tokenizer) == {"\n", *map(chr, range(32, 127))}
