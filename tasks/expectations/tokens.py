"""What the training tokenizer makes of prompts: how long they are, chat template and the opening of the
response included, and which characters it cannot express."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SLACK = 8
"""Tokens that a tokenizer may add out of nothing (word-start marks and the like)."""
COMMON = "".join(map(chr, range(128)))

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


def most_tokens(num_bytes: np.ndarray, frame: int) -> np.ndarray:
    """An upper bound without a tokenizer: no token stands for less than a byte. num_bytes: of each prompt's
    contents."""
    return num_bytes + (frame + SLACK)


def lost_of(characters: Iterable[str], tokenizer: Any) -> set[str]:
    """Those of these characters that the tokenizer cannot express. One that it only composes or spells as
    Unicode holds to be the same (NFC) is not lost."""
    from training.models import lost_characters

    # between digits: some tokenizers drop a space at the ends, and nothing composes with a digit
    return {
        character
        for character in set(characters)
        if lost_characters(tokenizer, f"0{unicodedata.normalize('NFC', character)}0")
    }


def _render(prompts: Sequence[Prompt], tokenizer: Any) -> list[str]:
    conversations = [list(prompt) for prompt in prompts]
    return tokenizer.apply_chat_template(conversations, add_generation_prompt=True, tokenize=False)
