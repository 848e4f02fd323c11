"""Problems of a prepared parquet file, and their chat messages as token ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcppo.errors import DataError

Message = dict[str, str]


@dataclass(frozen=True)
class Problem:
    """One row of data/prepared/*.parquet."""

    id: str
    data_source: str
    grader: str
    messages: tuple[Message, ...]
    gold: str
    text: str = ""
    """The bare problem, without template and options."""
    options: tuple[str, ...] = ()
    """Of a multiple-choice problem: in the order in which `messages` shows them."""


def read_problems(path: Path, max_count: int | None = None) -> list[Problem]:
    """Problems of a file in its order; with `max_count` the first of each data source by the hash of their
    id.

    Raises DataError for an empty file.
    """
    import pyarrow.parquet as pq

    rows = pq.read_table(path).to_pylist()
    if not rows:
        raise DataError(f"{path}: holds no problem; run `dvc repro prepare` with sources that give some")
    problems = [
        Problem(
            id=row["extra_info"]["id"],
            data_source=row["data_source"],
            grader=row["extra_info"]["grader"],
            messages=tuple({"role": m["role"], "content": m["content"]} for m in row["prompt"]),
            gold=row["reward_model"]["ground_truth"],
            text=row["extra_info"].get("problem") or "",
            options=tuple(row["extra_info"].get("options") or ()),
        )
        for row in rows
    ]
    if max_count is None:
        return problems
    chosen: set[str] = set()
    for source in {p.data_source for p in problems}:
        own = [p for p in problems if p.data_source == source]
        chosen.update(p.id for p in first_by_hash(own, max_count))
    return [p for p in problems if p.id in chosen]


def first_by_hash(problems: Sequence[Problem], max_count: int | None) -> list[Problem]:
    """The first `max_count` problems by the hash of their id, in the order given; None gives all.

    The choice is the same whatever order or subset is given.
    """
    if max_count is None:
        return list(problems)
    chosen = set(sorted((p.id for p in problems), key=_id_hash)[:max_count])
    return [p for p in problems if p.id in chosen]


def encode_prompt(tokenizer: Any, messages: tuple[Message, ...], max_prompt_tokens: int) -> list[int]:
    """Token ids of a chat prompt with the assistant's turn opened. Raises DataError if it is over the limit:
    cutting
    would change the problem."""
    ids = tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, return_dict=False)
    if len(ids) > max_prompt_tokens:
        raise DataError(
            f"prompt has {len(ids)} tokens, allowed are {max_prompt_tokens} (data.max_prompt_tokens): "
            f"{messages[-1]['content'][:80]!r}"
        )
    return list(ids)


def _id_hash(problem_id: str) -> str:
    return hashlib.sha256(problem_id.encode()).hexdigest()
