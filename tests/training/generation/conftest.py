"""Small models from scratch for the sampling tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def tiny_model(architecture: str, seed: int = 0) -> Any:
    """A random causal model with grouped-query attention and 40 tokens."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = getattr(transformers, f"{architecture}Config")(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=2,
        pad_token_id=0,
        **({"head_dim": 8} if architecture == "Qwen3" else {}),
    )
    model = getattr(transformers, f"{architecture}ForCausalLM")(config).eval()
    # sharper than a fresh model, so that tokens differ between positions
    with torch.no_grad():
        model.lm_head.weight.mul_(20)
    return model


@pytest.fixture(scope="session")
def qwen2() -> Any:
    return tiny_model("Qwen2")


@pytest.fixture
def tiny_policy(tmp_path: Path) -> Path:
    """A folder with the tiny model, fresh weights, and its tokenizer."""
    return save_tiny_policy(tmp_path / "policy")


def save_tiny_policy(folder: Path) -> Path:
    from training.models import build_initial_policy, save_policy
    from vcppo.config import TinyModel

    save_policy(*build_initial_policy(TinyModel(), seed=1), folder)
    return folder
