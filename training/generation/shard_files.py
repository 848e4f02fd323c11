"""Graded rollouts on disk: one parquet file a shard, whole or absent, each row with how it was drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.generation.engine import EngineSettings
from training.generation.prompts import Message
from training.generation.samples import Draw, Response
from training.generation.scoring import Scored

if TYPE_CHECKING:
    import pyarrow as pa


def rollout_schema() -> pa.Schema:
    """Columns of a rollout shard."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("data_source", pa.string()),
            ("grader", pa.string()),
            ("sample", pa.int32()),
            ("prompt_ids", pa.list_(pa.int32())),
            ("response_ids", pa.list_(pa.int32())),
            ("log_probs", pa.list_(pa.float32())),
            ("response", pa.string()),
            ("finish_reason", pa.string()),
            ("gold", pa.string()),
            ("status", pa.string()),
            ("answer", pa.string()),
            ("score", pa.float32()),
            # how it was drawn
            ("num_response_tokens", pa.int32()),
            ("prompt_hash", pa.string()),
            ("permutation", pa.list_(pa.int8())),
            ("engine", pa.string()),
            ("engine_version", pa.string()),
            ("dtype", pa.string()),
            ("batch_size", pa.int32()),
            ("seed", pa.int64()),
            ("temperature", pa.float64()),
            ("top_p", pa.float64()),
            ("top_k", pa.int32()),
            ("max_response_tokens", pa.int32()),
        ]
    )


def write_rollouts(
    path: Path,
    responses: Sequence[Response],
    scored: Sequence[Scored],
    settings: EngineSettings,
    draw: Draw,
) -> None:
    """Write one shard: to a temporary name, then renamed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    drawn = drawn_how(settings, draw)
    rows = [
        {
            "id": r.request.problem.id,
            "data_source": r.request.problem.data_source,
            "grader": r.request.problem.grader,
            "sample": r.request.sample,
            "prompt_ids": r.prompt_ids,
            "response_ids": r.response_ids,
            "log_probs": r.log_probs,
            "response": r.text,
            "finish_reason": r.finish_reason,
            "gold": r.request.gold,
            "status": s.status,
            "answer": s.answer,
            "score": s.score,
            "num_response_tokens": r.num_tokens,
            "prompt_hash": prompt_hash(r.request.problem.messages),
            "permutation": r.request.permutation,
            "engine_version": r.engine_version,
            **drawn,
        }
        for r, s in zip(responses, scored, strict=True)
    ]
    temporary = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pylist(rows, schema=rollout_schema()), temporary)
    temporary.replace(path)


def drawn_how(settings: EngineSettings, draw: Draw) -> dict[str, Any]:
    """The columns that all rows of a shard share. What only a remote server knows is null."""
    remote = settings.server if settings.engine == "openai" else None
    return {
        "engine": settings.engine,
        "dtype": settings.dtype if remote is None else None,
        "batch_size": settings.batch_size if remote is None else remote.concurrency,
        "seed": settings.seed,
        "temperature": draw.sampling.temperature,
        "top_p": draw.sampling.top_p,
        "top_k": draw.sampling.top_k,
        "max_response_tokens": draw.max_response_tokens,
    }


def prompt_hash(messages: Sequence[Message]) -> str:
    """16 hex digits of a chat prompt, options in the order of the problem: equal for equal questions."""
    text = json.dumps([[m["role"], m["content"]] for m in messages], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_rollouts(directory: Path) -> list[dict[str, Any]]:
    """All rows of a folder of shards, in shard order."""
    import pyarrow.parquet as pq

    return [row for path in sorted(directory.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
