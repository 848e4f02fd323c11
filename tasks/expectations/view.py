"""Flat views of the prepared data: one row a problem or a trace, plain cells only.

Great Expectations compares whole cells, so lists and structs are reduced here to hashes, lengths and short
words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcppo.errors import DataError
from vcppo.grading import canonical_gold

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Message = Mapping[str, str]


def problems_view(prepared: Path, tokenizer: Any) -> pd.DataFrame:
    """Columns id, split, source, grader, prompt_sha256, prompt_tokens, gold, gold_state; training rows first.

    prompt_tokens counts tokens of the training tokenizer with its chat template, as the policy will see
    them; gold_state is `canonical`, or says what the grader thinks of the gold answer.
    """
    import pandas as pd

    columns: dict[str, list[Any]] = {
        name: [] for name in ("id", "split", "source", "grader", "prompt", "gold")
    }
    for split in ("train", "eval"):
        table = read_table(prepared / f"{split}.parquet")
        extra = _column(table, "extra_info", prepared)
        columns["id"] += [row["id"] for row in extra]
        columns["split"] += [split] * table.num_rows
        columns["source"] += _column(table, "data_source", prepared)
        columns["grader"] += [row["grader"] for row in extra]
        columns["prompt"] += _column(table, "prompt", prepared)
        columns["gold"] += [row["ground_truth"] for row in _column(table, "reward_model", prepared)]
    prompts = columns.pop("prompt")
    return pd.DataFrame(
        {
            **columns,
            "prompt_sha256": [hashlib.sha256(prompt_text(p).encode()).hexdigest() for p in prompts],
            "prompt_tokens": prompt_tokens(prompts, tokenizer),
            "gold_state": [
                gold_state(gold, grader)
                for gold, grader in zip(columns["gold"], columns["grader"], strict=True)
            ],
        }
    )


def traces_view(prepared: Path, problem_ids: set[str], tokenizer: Any) -> pd.DataFrame:
    """Columns id, problem (`known` if it is a training problem), response_tokens (end-of-sequence token
    included)."""
    import pandas as pd

    table = read_table(prepared / "sft.parquet")
    ids = _column(table, "id", prepared)
    responses = _column(table, "response", prepared)
    return pd.DataFrame(
        {
            "id": ids,
            "problem": ["known" if id_ in problem_ids else "unknown" for id_ in ids],
            "response_tokens": [
                len(ids) + 1 for ids in tokenizer(responses, add_special_tokens=False)["input_ids"]
            ]
            if responses
            else [],
        }
    )


def prompt_text(messages: Sequence[Message]) -> str:
    """A prompt as one string, roles included."""
    return "\0".join(f"{message['role']}\0{message['content']}" for message in messages)


def prompt_tokens(prompts: Sequence[Sequence[Message]], tokenizer: Any) -> list[int]:
    """Length of each prompt in tokens, chat template and the opening of the response included."""
    if not prompts:
        return []
    rendered = tokenizer.apply_chat_template(list(prompts), add_generation_prompt=True, tokenize=False)
    return [len(ids) for ids in tokenizer(rendered, add_special_tokens=False)["input_ids"]]


def gold_state(gold: str, grader: str) -> str:
    """`canonical` if the grader reads the gold answer and would write it the same way."""
    try:
        canonical = canonical_gold(gold, grader)
    except DataError as error:
        return f"unreadable: {error}"
    return "canonical" if canonical == gold else f"should be {canonical}"


def read_table(path: Path) -> pa.Table:
    """One parquet file. Raises DataError if it is missing or torn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: is no readable parquet file ({error}); run `dvc repro prepare` again"
        ) from None


def _column(table: pa.Table, name: str, prepared: Path) -> list[Any]:
    if name not in table.column_names:
        raise DataError(
            f"{prepared}: a table has no column {name!r}, only {', '.join(table.column_names)}; run `dvc "
            "repro prepare`"
        )
    return table.column(name).to_pylist()
