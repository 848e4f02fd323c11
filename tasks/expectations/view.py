"""Flat views of the prepared data: one row a problem, a trace or a part of the set; plain cells only.

Great Expectations compares whole cells, so lists and structs are reduced to hashes, lengths and short words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.expectations.golds import gold_states, letter_p_value
from tasks.expectations.rows import (
    Described,
    Reference,
    column,
    describe,
    num_groups_and_rows,
    read_rows,
    unreadable,
)
from tasks.expectations.tokens import count_tokens, frame_bytes
from tasks.sources.contamination import BenchmarkIndex
from vcppo.config import DataConfig

if TYPE_CHECKING:
    import pandas as pd

PROBLEM_COLUMNS = (
    "id", "split", "source", "grader", "prompt_sha256", "prompt_tokens", "gold", "gold_state", "gold_grade",
    "other_grade", "golds_of_prompt", "language", "template", "answer_inside", "figure", "options", "overlap",
)  # fmt: skip
TRACE_COLUMNS = ("id", "problem", "response_tokens")
PART_COLUMNS = ("id", "rows", "letter_p_value")

SMALL = 100_000
"""Up to so many problems are described in this process and have their prompts all counted in tokens. Of
more, only the prompts that might exceed the limit are counted, and two processes share the work."""
NUM_WORKERS = 2


def problems_view(prepared: Path, data: DataConfig, tokenizer: Any, small: int = SMALL) -> pd.DataFrame:
    """`PROBLEM_COLUMNS`, training rows first.

    prompt_tokens: by the training tokenizer (an upper bound, see `SMALL`, where that keeps the limit
    already); gold_state, gold_grade, other_grade: see `golds`; golds_of_prompt: different gold answers
    given to the same problem; overlap: the evaluation problem that a training problem repeats; the rest:
    see `signs`.
    """
    import pandas as pd

    files = {split: prepared / f"{split}.parquet" for split in ("train", "eval")}
    sizes = {split: num_groups_and_rows(file) for split, file in files.items()}
    is_small = sum(rows for _, rows in sizes.values()) <= small
    reference = Reference(
        data=data,
        index=BenchmarkIndex((row.id, row.compared) for row in read_rows(files["eval"])),
        traces=_traces(prepared),
        frame=frame_bytes(next(read_rows(files["eval"])).prompt, tokenizer) if sizes["eval"][1] else 0,
        trusted_bound=0 if is_small else data.max_prompt_tokens,
    )
    groups = [(files[split], group, split) for split in files for group in range(sizes[split][0])]
    columns: dict[str, list[Any]] = {name: [] for name in PROBLEM_COLUMNS}
    keys: list[bytes] = []
    for part in _described(groups, reference, 1 if is_small else NUM_WORKERS):
        counts = count_tokens([prompt for _, prompt in part.uncounted], tokenizer)
        for (place, _), count in zip(part.uncounted, counts, strict=True):
            part.columns["prompt_tokens"][place] = count
        for name, cells in part.columns.items():
            columns[name] += cells
        keys += part.keys
    asked = list(zip(columns["gold"], columns["grader"], strict=True))
    states = gold_states(asked)
    for position, name in enumerate(("gold_state", "gold_grade", "other_grade")):
        columns[name] = [states[each][position] for each in asked]
    columns["golds_of_prompt"] = _golds_of_prompt(keys, columns["gold"])
    return pd.DataFrame(columns)


def traces_view(prepared: Path, problem_ids: set[str], tokenizer: Any) -> pd.DataFrame:
    """`TRACE_COLUMNS`. problem: `known` if it is a training problem; response_tokens: end of sequence
    included."""
    import pandas as pd

    traces = _traces(prepared)
    ids = [id_ for id_, responses in traces.items() for _ in responses]
    responses = [response for each in traces.values() for response in each]
    encoded = tokenizer(responses, add_special_tokens=False)["input_ids"] if responses else []
    return pd.DataFrame(
        {
            "id": ids,
            "problem": ["known" if id_ in problem_ids else "unknown" for id_ in ids],
            "response_tokens": [len(tokens) + 1 for tokens in encoded],
        }
    )


def parts_view(problems: pd.DataFrame, data: DataConfig) -> pd.DataFrame:
    """`PART_COLUMNS`: a row for `train`, `eval` and each declared source, with its gold letters if it has
    any."""
    import pandas as pd

    rows: list[dict[str, Any]] = [
        {"id": split, "rows": int((problems["split"] == split).sum()), "letter_p_value": 1.0}
        for split in ("train", "eval")
    ]
    for source in data.sources:
        golds = problems["gold"][problems["source"] == source.name]
        p_value = letter_p_value(golds) if source.grader == "gpqa" else 1.0
        rows.append({"id": f"source {source.name}", "rows": len(golds), "letter_p_value": p_value})
    return pd.DataFrame(rows)


def _described(
    groups: Sequence[tuple[Path, int, str]], reference: Reference, num_workers: int
) -> Iterator[Described]:
    """Each row group's cells, in the order of the groups."""
    if num_workers == 1:
        yield from (describe(*group, reference) for group in groups)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # spawned, not forked: this process may hold threads of torch and of the tokenizer
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(num_workers, context, _set_reference, (reference,)) as pool:
        yield from pool.map(_describe_in_worker, groups)


_reference: Reference | None = None


def _set_reference(reference: Reference) -> None:
    global _reference
    _reference = reference


def _describe_in_worker(group: tuple[Path, int, str]) -> Described:
    assert _reference is not None
    return describe(*group, _reference)


def _golds_of_prompt(keys: Sequence[bytes], golds: Sequence[str]) -> list[int]:
    first: dict[bytes, str] = {}
    several: defaultdict[bytes, set[str]] = defaultdict(set)
    for key, gold in zip(keys, golds, strict=True):
        if first.setdefault(key, gold) != gold:
            several[key].update((first[key], gold))
    return [len(several[key]) if key in several else 1 for key in keys]


def _traces(prepared: Path) -> dict[str, list[str]]:
    """SFT responses by the id of their problem."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = prepared / "sft.parquet"
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    traces: defaultdict[str, list[str]] = defaultdict(list)
    for id_, response in zip(column(table, "id", path), column(table, "response", path), strict=True):
        traces[id_].append(response)
    return dict(traces)
