"""The character tokenizer: small, total, the same after a round trip through a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.models import build_initial_policy, load_policy, load_tokenizer, lost_characters, save_policy
from vcppo.config import TinyModel

PRINTABLE = "\n" + "".join(map(chr, range(32, 127)))


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list:
    folder = tmp_path_factory.mktemp("policy")
    policy, fresh = build_initial_policy(TinyModel(), seed=1)
    save_policy(policy, fresh, folder)
    return [fresh, load_policy(folder)[1]]


@given(text=st.text(alphabet=PRINTABLE, max_size=80))
def test_printable_ascii_is_one_token_a_character_and_comes_back(tokenizers: list, text: str) -> None:
    for tokenizer in tokenizers:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert len(ids) == len(text)
        assert tokenizer.decode(ids) == text
        assert lost_characters(tokenizer, text) == ""


@given(text=st.text(max_size=40))
def test_any_text_is_encoded_without_failing(tokenizers: list, text: str) -> None:
    for tokenizer in tokenizers:
        tokenizer.decode(tokenizer(text)["input_ids"])


def test_characters_outside_the_vocabulary_are_named(tokenizers: list) -> None:
    for tokenizer in tokenizers:
        assert lost_characters(tokenizer, "5 € or 中 €") == "€中"


def test_vocabulary_is_small_and_specials_are_distinct() -> None:
    tokenizer = load_tokenizer(TinyModel())
    assert len(tokenizer) == 99
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert tokenizer.eos_token_id != tokenizer.pad_token_id
    assert tokenizer.model_max_length == TinyModel().max_positions


def test_chat_template_costs_five_tokens_and_opens_the_answer(tokenizers: list) -> None:
    for tokenizer in tokenizers:
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": "1 2 3"}], add_generation_prompt=True, return_dict=False
        )
        assert len(ids) == len("1 2 3") + 5
        assert tokenizer.decode(ids) == "<|im_start|>u1 2 3<|im_end|><|im_start|>a"


def test_a_saved_policy_brings_its_tokenizer_and_template(tokenizers: list, tmp_path: Path) -> None:
    fresh, reloaded = tokenizers
    assert type(reloaded) is type(fresh)
    assert reloaded.get_vocab() == fresh.get_vocab()
    assert reloaded.chat_template == fresh.chat_template
    assert (reloaded.eos_token_id, reloaded.pad_token_id) == (fresh.eos_token_id, fresh.pad_token_id)
