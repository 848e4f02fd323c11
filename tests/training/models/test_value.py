"""Value models: a head of their own, seeded, checked and hashed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from training.models import (
    build_initial_policy,
    load_value_model,
    new_value_model,
    save_policy,
    save_value_model,
    value_head_sha256,
)
from training.models.value_start import link_value_model
from vcppo.config import TinyModel
from vcppo.errors import CheckpointError


@pytest.fixture(scope="module")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    save_policy(*build_initial_policy(TinyModel(), seed=1), folder)
    return folder


@pytest.fixture
def critic_folder(policy_folder: Path, tmp_path: Path) -> Path:
    from training.models.policy import load_folder_tokenizer

    folder = tmp_path / "critic"
    save_value_model(new_value_model(policy_folder, seed=5), load_folder_tokenizer(policy_folder), folder)
    return folder


def test_a_new_value_model_has_the_trunk_and_a_seeded_head(policy_folder: Path) -> None:
    torch.manual_seed(1)
    first = new_value_model(policy_folder, seed=5)
    torch.manual_seed(2)
    again = new_value_model(policy_folder, seed=5)
    other = new_value_model(policy_folder, seed=6)
    policy, _ = build_initial_policy(TinyModel(), seed=1)
    assert torch.equal(first.score.weight, again.score.weight)
    assert not torch.equal(first.score.weight, other.score.weight)
    assert torch.equal(first.model.embed_tokens.weight, policy.model.embed_tokens.weight)
    assert first.config.num_labels == 1
    assert {p.dtype for p in first.parameters()} == {torch.float32}


def test_values_are_not_noisy_in_training_mode(policy_folder: Path) -> None:
    model = new_value_model(policy_folder, seed=5).train()
    ids = torch.arange(3, 20)[None]
    assert torch.equal(model(ids).logits, model(ids).logits)


def test_a_saved_value_model_is_what_verl_loads(critic_folder: Path) -> None:
    """verl/utils/model.py, load_valuehead_model: AutoModelForTokenClassification on the folder's own
    config.
    """
    from transformers import AutoConfig, AutoModelForTokenClassification

    saved = load_value_model(critic_folder)
    model, report = AutoModelForTokenClassification.from_pretrained(
        critic_folder,
        config=AutoConfig.from_pretrained(critic_folder),
        dtype="auto",
        output_loading_info=True,
    )
    assert not report["missing_keys"]
    assert model.dtype == torch.float32
    assert torch.equal(model.score.weight, saved.score.weight)
    config = json.loads((critic_folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen2ForTokenClassification"]


def test_a_policy_is_no_critic(policy_folder: Path) -> None:
    with pytest.raises(CheckpointError, match="no value head"):
        load_value_model(policy_folder)
    with pytest.raises(CheckpointError, match="no value head"):
        value_head_sha256(policy_folder)


def test_two_labels_are_refused(critic_folder: Path, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForTokenClassification

    config = AutoConfig.from_pretrained(critic_folder)
    config.num_labels = 2
    AutoModelForTokenClassification.from_config(config).save_pretrained(tmp_path / "two")
    with pytest.raises(CheckpointError, match="2 labels"):
        load_value_model(tmp_path / "two")


def test_a_torn_file_is_named(critic_folder: Path) -> None:
    weights = critic_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load_value_model(critic_folder)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        load_value_model(tmp_path)
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        new_value_model(tmp_path, seed=1)


def test_head_hash_tells_heads_apart_and_ignores_the_trunk(critic_folder: Path, tmp_path: Path) -> None:
    from training.models.policy import load_folder_tokenizer

    tokenizer = load_folder_tokenizer(critic_folder)
    model = load_value_model(critic_folder)
    shutil.copytree(critic_folder, tmp_path / "copy")
    assert value_head_sha256(critic_folder) == value_head_sha256(tmp_path / "copy")
    with torch.no_grad():
        model.model.embed_tokens.weight.add_(1.0)
    save_value_model(model, tokenizer, tmp_path / "trunk")
    assert value_head_sha256(critic_folder) == value_head_sha256(tmp_path / "trunk")
    with torch.no_grad():
        model.score.bias.add_(1.0)
    save_value_model(model, tokenizer, tmp_path / "head")
    assert value_head_sha256(critic_folder) != value_head_sha256(tmp_path / "head")


@pytest.mark.parametrize("max_shard_size", ["1GB", "150KB"])
def test_a_linked_value_model_is_the_new_one_to_the_bit(tmp_path: Path, max_shard_size: str) -> None:
    """Loaded as verl loads it; the policy in one file, or sharded with an index."""
    from transformers import AutoConfig, AutoModelForTokenClassification

    model, tokenizer = build_initial_policy(TinyModel(), seed=1)
    policy = tmp_path / "policy"
    save_policy(model, tokenizer, policy)
    if max_shard_size != "1GB":
        (policy / "model.safetensors").unlink()
        model.save_pretrained(policy, max_shard_size=max_shard_size)
        assert len(list(policy.glob("*.safetensors"))) > 1
    linked = link_value_model(policy, tmp_path / "critic", seed=5)
    loaded, report = AutoModelForTokenClassification.from_pretrained(
        linked, config=AutoConfig.from_pretrained(linked), dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"]
    expected = new_value_model(policy, seed=5)
    assert {n: p.shape for n, p in loaded.named_parameters()} == {
        n: p.shape for n, p in expected.named_parameters()
    }
    for name, parameter in expected.named_parameters():
        assert torch.equal(loaded.get_parameter(name), parameter), name
    assert value_head_sha256(linked) != value_head_sha256(link_value_model(policy, linked, seed=6))
