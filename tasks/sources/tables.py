"""Prepared problems as parquet in verl's schema (data/README.md), built column by column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.sources.assembly import Placed
from tasks.sources.boxes import response_to_imitate
from vcppo.config import DataConfig

if TYPE_CHECKING:
    import pyarrow as pa

ABILITY = {"aime": "math", "math": "math", "gpqa": "science", "steps": "math"}


def chat(problem: str, data: DataConfig) -> list[dict[str, str]]:
    """The prompt of a problem as chat messages."""
    system = [{"role": "system", "content": data.system_prompt}] if data.system_prompt is not None else []
    return [*system, {"role": "user", "content": data.prompt_template.replace("{problem}", problem)}]


def verl_table(placed: Sequence[Placed], split: str, data: DataConfig) -> pa.Table:
    """Problems as rows of verl's schema, in the order given."""
    import pyarrow as pa

    golds = [gold for _, gold in placed]
    problems = [gold.problem for gold in golds]
    graders = [source.grader for source, _ in placed]
    return pa.table(
        {
            "data_source": pa.array([source.name for source, _ in placed], pa.string()),
            "prompt": _prompts([problem.shown for problem in problems], data),
            "ability": pa.array([ABILITY[grader] for grader in graders], pa.string()),
            "reward_model": _struct(
                style=pa.array(["rule"] * len(placed), pa.string()),
                ground_truth=pa.array([gold.gold for gold in golds], pa.string()),
            ),
            "extra_info": _struct(
                id=pa.array([problem.id for problem in problems], pa.string()),
                split=pa.array([split] * len(placed), pa.string()),
                index=pa.array(range(len(placed)), pa.int64()),
                grader=pa.array(graders, pa.string()),
                problem=pa.array([problem.text for problem in problems], pa.string()),
                options=pa.array([list(problem.options) for problem in problems], pa.list_(pa.string())),
            ),
        }
    )


def sft_table(train: Sequence[Placed], data: DataConfig) -> pa.Table:
    """Responses to imitate: every worked solution of the training problems."""
    import pyarrow as pa

    rows = [
        # the steps grader reads the whole response: there is no answer to put into a box
        (gold, trace if source.grader == "steps" else response_to_imitate(trace, gold.gold))
        for source, gold in train
        for trace in gold.problem.traces
    ]
    return pa.table(
        {
            "id": pa.array([gold.problem.id for gold, _ in rows], pa.string()),
            "prompt": _prompts([gold.problem.shown for gold, _ in rows], data),
            "response": pa.array([response for _, response in rows], pa.string()),
        }
    )


def write_parquet(table: pa.Table, path: Path) -> None:
    """The same table gives the same bytes: no time, no host, no pandas metadata goes in."""
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd", row_group_size=16384)


def _prompts(texts: Sequence[str], data: DataConfig) -> pa.ListArray:
    import pyarrow as pa

    frame = chat("{problem}", data)
    size = len(frame)
    contents = [
        content
        for text in texts
        for content in ([frame[0]["content"]] if size == 2 else [])
        + [data.prompt_template.replace("{problem}", text)]
    ]
    messages = _struct(
        content=pa.array(contents, pa.string()),
        role=pa.array([message["role"] for message in frame] * len(texts), pa.string()),
    )
    return pa.ListArray.from_arrays(pa.array(range(0, size * len(texts) + 1, size), pa.int32()), messages)


def _struct(**columns: Any) -> pa.StructArray:
    import pyarrow as pa

    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
