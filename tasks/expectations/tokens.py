"""Length of prompts in tokens of the training tokenizer, chat template and the opening of the response
included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SLACK = 8
"""Tokens that a tokenizer may add out of nothing (word-start marks and the like)."""

Prompt = Sequence[Mapping[str, str]]


def count_tokens(prompts: Sequence[Prompt], tokenizer: Any) -> list[int]:
    """Tokens of each prompt, counted."""
    if not prompts:
        return []
    encoded = tokenizer(_render(prompts, tokenizer), add_special_tokens=False)
    return [len(tokens) for tokens in encoded["input_ids"]]


def frame_bytes(prompt: Prompt, tokenizer: Any) -> int:
    """Bytes that the chat template puts around messages of these roles."""
    return len(_render([[{**message, "content": ""} for message in prompt]], tokenizer)[0].encode())


def most_tokens(prompt: Prompt, frame: int) -> int:
    """An upper bound without a tokenizer: no token stands for less than a byte."""
    return frame + SLACK + sum(len(message["content"].encode()) for message in prompt)


def _render(prompts: Sequence[Prompt], tokenizer: Any) -> list[str]:
    conversations = [list(prompt) for prompt in prompts]
    return tokenizer.apply_chat_template(conversations, add_generation_prompt=True, tokenize=False)
