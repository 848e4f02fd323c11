"""Kind `tiny`: a Qwen2-architecture model from scratch, about 0.1 M parameters, with the character
tokenizer.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from training.models.characters import build_character_tokenizer
from vcppo.config import TinyModel
from vcppo.errors import ConfigurationError

INITIALIZER_RANGE = 0.08
"""Deviation of fresh weights. transformers' 0.02 suits widths in the thousands; at 64 it learns more
slowly.
"""


def load_tokenizer(model: TinyModel) -> PreTrainedTokenizerBase:
    """The character tokenizer."""
    return build_character_tokenizer(model.max_positions)


def load_model(model: TinyModel, tokenizer: PreTrainedTokenizerBase, seed: int) -> PreTrainedModel:
    """Fresh float32 weights: a function of the section and the seed; the process's own generator is
    untouched.

    Raises ConfigurationError if the sizes do not fit each other.
    """
    from transformers import Qwen2Config, Qwen2ForCausalLM

    _check_sizes(model)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=model.hidden_size,
        intermediate_size=model.intermediate_size,
        num_hidden_layers=model.num_layers,
        num_attention_heads=model.num_heads,
        num_key_value_heads=model.num_kv_heads,
        max_position_embeddings=model.max_positions,
        # separate input and output embeddings: FSDP wraps and saves them without a special case
        tie_word_embeddings=False,
        initializer_range=INITIALIZER_RANGE,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = Qwen2ForCausalLM(config)
    # only for the weights drawn above: whoever puts a fresh head on this trunk must get a small one
    policy.config.initializer_range = Qwen2Config().initializer_range
    return policy


def _check_sizes(model: TinyModel) -> None:
    if model.hidden_size % (2 * model.num_heads):
        raise ConfigurationError(
            f"model.hidden_size ({model.hidden_size}) must be a multiple of twice model.num_heads "
            f"({model.num_heads}): rotary positions need an even width of each head"
        )
    if model.num_heads % model.num_kv_heads:
        raise ConfigurationError(
            f"model.num_kv_heads ({model.num_kv_heads}) must divide model.num_heads ({model.num_heads})"
        )
