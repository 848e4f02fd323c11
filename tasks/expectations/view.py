"""Flat views of the prepared data: one row a problem, a trace or a part of the set; plain cells only.

Great Expectations compares whole cells, so lists and structs are reduced here to hashes, lengths and short
words.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.expectations.golds import gold_states, letter_p_value
from tasks.expectations.signs import NONE, answer_inside, language, option_state, template_state
from tasks.expectations.tokens import prompt_tokens
from tasks.sources.contamination import BenchmarkIndex
from tasks.sources.figures import figure_marker
from tasks.sources.words import comparison_key
from vcppo.config import DataConfig
from vcppo.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PROBLEM_COLUMNS = (
    "id", "split", "source", "grader", "prompt_sha256", "prompt_tokens", "gold", "gold_state", "gold_grade",
    "other_grade", "golds_of_prompt", "language", "template", "answer_inside", "figure", "options", "overlap",
)  # fmt: skip
EXACT_UP_TO = 100_000
"""Up to so many prompts are all counted in tokens; of more, only those that might exceed the limit."""
BATCH = 16384
TRACE_COLUMNS = ("id", "problem", "response_tokens")
PART_COLUMNS = ("id", "rows", "letter_p_value")


def problems_view(prepared: Path, data: DataConfig, tokenizer: Any) -> pd.DataFrame:
    """`PROBLEM_COLUMNS`, training rows first; read batch by batch, so that texts need not fit into memory.

    prompt_tokens: by the training tokenizer (see `tokens`; exact up to `EXACT_UP_TO` problems); gold_state,
    gold_grade, other_grade: see `golds`; golds_of_prompt: different gold answers given to the same problem;
    overlap: the evaluation problem that a training problem repeats; the rest: see `signs`.
    """
    import pandas as pd

    files = {split: prepared / f"{split}.parquet" for split in ("train", "eval")}
    exact = sum(_num_rows(file) for file in files.values()) <= EXACT_UP_TO
    index = BenchmarkIndex(
        (row.id, row.compared) for batch in _batches(files["eval"], prepared) for row in batch
    )
    traces = _traces(prepared)
    columns: dict[str, list[Any]] = {name: [] for name in PROBLEM_COLUMNS}
    keys: list[int] = []
    for split, file in files.items():
        for batch in _batches(file, prepared):
            prompts = [row.prompt for row in batch]
            columns["prompt_tokens"] += prompt_tokens(prompts, tokenizer, data.max_prompt_tokens, exact=exact)
            for row in batch:
                overlap = (
                    index.overlap(row.compared, data.contamination_coverage) if split == "train" else None
                )
                content = row.prompt[-1]["content"]
                columns["id"].append(row.id)
                columns["split"].append(split)
                columns["source"].append(row.source)
                columns["grader"].append(row.grader)
                columns["prompt_sha256"].append(hashlib.sha256(prompt_text(row.prompt).encode()).hexdigest())
                columns["gold"].append(row.gold)
                columns["language"].append(language(row.problem))
                columns["template"].append(
                    template_state(content, _shown_in(content, row.problem, data), data.prompt_template)
                )
                columns["answer_inside"].append(answer_inside(row.problem, traces.get(row.id, ())))
                columns["figure"].append(figure_marker(row.problem) or NONE)
                columns["options"].append(option_state(row.options, row.grader))
                columns["overlap"].append(overlap.benchmark_id if overlap else NONE)
                keys.append(hash(comparison_key(row.compared)))
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

    table = _read_table(prepared / "sft.parquet")
    ids = _column(table, "id", prepared)
    responses = _column(table, "response", prepared)
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


def prompt_text(messages: Sequence[Mapping[str, str]]) -> str:
    """A prompt as one string, roles included."""
    return "\0".join(f"{message['role']}\0{message['content']}" for message in messages)


def _shown_in(content: str, text: str, data: DataConfig) -> str:
    """The problem as the message shows it: the text itself, or with its lettered options behind it."""
    prefix, suffix = data.prompt_template.split("{problem}")
    inner = content.removeprefix(prefix).removesuffix(suffix)
    return inner if inner.startswith(f"{text}\n\n(A) ") else text


def _golds_of_prompt(keys: Sequence[int], golds: Sequence[str]) -> list[int]:
    first: dict[int, str] = {}
    several: defaultdict[int, set[str]] = defaultdict(set)
    for key, gold in zip(keys, golds, strict=True):
        if first.setdefault(key, gold) != gold:
            several[key].update((first[key], gold))
    return [len(several[key]) if key in several else 1 for key in keys]


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    source: str
    grader: str
    gold: str
    problem: str
    options: list[str]
    prompt: list[dict[str, str]]

    @property
    def compared(self) -> str:
        return "\n".join([self.problem, *sorted(self.options)])


def _batches(path: Path, prepared: Path) -> Iterator[list[_Row]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH):
                table = pa.Table.from_batches([batch])
                yield [
                    _Row(*cells)
                    for cells in zip(
                        _field(table, "extra_info", "id", prepared),
                        _column(table, "data_source", prepared),
                        _field(table, "extra_info", "grader", prepared),
                        _field(table, "reward_model", "ground_truth", prepared),
                        _field(table, "extra_info", "problem", prepared),
                        _field(table, "extra_info", "options", prepared),
                        _column(table, "prompt", prepared),
                        strict=True,
                    )
                ]
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _num_rows(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _traces(prepared: Path) -> dict[str, list[str]]:
    table = _read_table(prepared / "sft.parquet")
    traces: dict[str, list[str]] = defaultdict(list)
    for id_, response in zip(
        _column(table, "id", prepared), _column(table, "response", prepared), strict=True
    ):
        traces[id_].append(response)
    return traces


def _read_table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: is no readable parquet file ({error}); run `dvc repro prepare` again")


def _column(table: pa.Table, name: str, prepared: Path) -> list[Any]:
    if name not in table.column_names:
        raise _missing(name, table.column_names, prepared)
    return table.column(name).to_pylist()


def _field(table: pa.Table, column: str, name: str, prepared: Path) -> list[Any]:
    import pyarrow.compute as pc

    if column not in table.column_names:
        raise _missing(column, table.column_names, prepared)
    fields = [field.name for field in table.schema.field(column).type]
    if name not in fields:
        raise _missing(f"{column}.{name}", fields, prepared)
    return pc.struct_field(table.column(column), name).to_pylist()


def _missing(name: str, present: Sequence[str], prepared: Path) -> DataError:
    return DataError(
        f"{prepared}: a table has no column {name!r}, only {', '.join(present)}; run `dvc repro prepare`"
    )
