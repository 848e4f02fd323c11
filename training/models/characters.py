"""The tiny model's tokenizer: one token a character (printable ASCII and newline) and three specials.

99 entries, because every entry costs one logit a token. Built in code: nothing is fetched. It is
transformers' Qwen2 tokenizer without merges, the class that `AutoTokenizer` takes for every Qwen2 folder
whatever the folder says. A character outside the vocabulary makes no token: it never fails, but it is lost
(`lost_characters`).
"""

from __future__ import annotations

from transformers import PreTrainedTokenizerBase

END_OF_TEXT = "<|endoftext|>"
"""Padding."""
START = "<|im_start|>"
END = "<|im_end|>"
"""End of sequence."""
CHARACTERS = "\n" + "".join(chr(code) for code in range(32, 127))

# ChatML with roles cut to their first letter: a role spelled out would cost a token a letter.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    f"{{{{ '{START}' + message['role'][0] + message['content'] + '{END}' }}}}"
    "{% endfor %}"
    f"{{% if add_generation_prompt %}}{{{{ '{START}a' }}}}{{% endif %}}"
)


def build_character_tokenizer(max_positions: int) -> PreTrainedTokenizerBase:
    """The tokenizer of kind `tiny`. max_positions: longest sequence of its model, in tokens."""
    from tokenizers import pre_tokenizers
    from transformers import Qwen2Tokenizer

    # the tokenizer works on bytes that are written as visible characters: a space is "Ġ", a newline "Ċ"
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    visible = [byte_level.pre_tokenize_str(character)[0][0] for character in CHARACTERS]
    vocabulary = {entry: i for i, entry in enumerate([END_OF_TEXT, START, END, *visible])}
    return Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[],
        eos_token=END,
        pad_token=END_OF_TEXT,
        unk_token=END_OF_TEXT,
        additional_special_tokens=[START],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=max_positions,
    )


def lost_characters(tokenizer: PreTrainedTokenizerBase, text: str) -> str:
    """The characters of `text` that the tokenizer cannot express, in their order; empty for almost any text.

    Meant for checking data before training. A byte-level tokenizer of a real model loses nothing.
    """
    kept = tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"], skip_special_tokens=False)
    if kept == text:
        return ""
    alphabet = set(kept)
    return "".join(dict.fromkeys(character for character in text if character not in alphabet))
