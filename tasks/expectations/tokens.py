"""Length of prompts in tokens of the training tokenizer, chat template included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SLACK = 8
"""Tokens that a tokenizer may add out of nothing (word-start marks and the like)."""

Prompt = Sequence[Mapping[str, str]]


def prompt_tokens(prompts: Sequence[Prompt], tokenizer: Any, limit: int, *, exact: bool = True) -> list[int]:
    """Tokens of each prompt with the opening of the response.

    exact: count every one. Otherwise only those are counted that might exceed the limit, and the others get
    an upper bound: no token stands for less than a byte, so a prompt of few enough bytes keeps the limit
    whatever its tokens are.
    """
    if exact or not prompts:
        return _count(prompts, tokenizer)
    frame = len(_render([[{**message, "content": ""} for message in prompts[0]]], tokenizer)[0].encode())
    bounds = [
        frame + SLACK + sum(len(message["content"].encode()) for message in prompt) for prompt in prompts
    ]
    doubtful = [index for index, bound in enumerate(bounds) if bound > limit]
    counts = _count([prompts[index] for index in doubtful], tokenizer)
    for index, count in zip(doubtful, counts, strict=True):
        bounds[index] = count
    return bounds


def _count(prompts: Sequence[Prompt], tokenizer: Any) -> list[int]:
    if not prompts:
        return []
    encoded = tokenizer(_render(prompts, tokenizer), add_special_tokens=False)
    return [len(tokens) for tokens in encoded["input_ids"]]


def _render(prompts: Sequence[Prompt], tokenizer: Any) -> list[str]:
    conversations = [list(prompt) for prompt in prompts]
    return tokenizer.apply_chat_template(conversations, add_generation_prompt=True, tokenize=False)
