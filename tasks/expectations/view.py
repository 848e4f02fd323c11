"""Flat views of the prepared data: one row a problem, a trace or a part of the set; plain cells only.

Great Expectations compares whole cells, so lists and structs are reduced to hashes, lengths and short words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.expectations.golds import gold_states, letter_p_value
from tasks.expectations.prepared import Problems, column, num_groups_and_rows, read_group, unreadable
from tasks.expectations.rows import Described, Reference, describe
from tasks.expectations.signs import NONE
from tasks.expectations.tokens import COMMON, count_tokens, frame_bytes, lost_of
from tasks.sources.contamination import BenchmarkIndex
from vcppo.config import DataConfig

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PROBLEM_COLUMNS = (
    "id", "split", "source", "grader", "prompt_sha256", "prompt_tokens", "lost_characters", "gold",
    "gold_state", "gold_grade", "other_grade", "golds_of_prompt", "language", "template", "answer_inside",
    "figure", "options", "overlap",
)  # fmt: skip
FREE_TEXT = ("id", "prompt_sha256")
"""Columns whose cells are nearly all different; those with few different words are kept as categories, which
Great Expectations compares and copies far faster."""
TRACE_COLUMNS = ("id", "problem", "response_tokens")
PART_COLUMNS = ("id", "rows", "letter_p_value")

SMALL = 100_000
"""Up to so many problems are described in this process and have their prompts all counted in tokens. Of
more, only the prompts that might exceed the limit are counted, and two processes share the work."""
NUM_WORKERS = 2


def problems_view(prepared: Path, data: DataConfig, tokenizer: Any, small: int = SMALL) -> pd.DataFrame:
    """`PROBLEM_COLUMNS`, training rows first.

    prompt_tokens: by the training tokenizer (an upper bound, see `SMALL`, where that keeps the limit
    already); lost_characters: of the prompt, those that this tokenizer cannot express; gold_state,
    gold_grade, other_grade: see `golds`; golds_of_prompt: different gold answers given to the same problem;
    overlap: the evaluation problem that a training problem repeats; the rest: see `signs`.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    files = {split: prepared / f"{split}.parquet" for split in ("train", "eval")}
    sizes = {split: num_groups_and_rows(file) for split, file in files.items()}
    is_small = sum(rows for _, rows in sizes.values()) <= small
    benchmarks = [read_group(files["eval"], group) for group in range(sizes["eval"][0])]
    reference = Reference(
        data=data,
        index=BenchmarkIndex(_id_and_text(benchmarks)),
        traces=_traces(prepared),
        frame=_frame(benchmarks, tokenizer),
        trusted_bound=0 if is_small else data.max_prompt_tokens,
        expressible="".join(sorted(set(COMMON) - lost_of(COMMON, tokenizer))),
    )
    groups = [(files[split], group, split) for split in files for group in range(sizes[split][0])]
    columns: defaultdict[str, list[pa.Array]] = defaultdict(list)
    keys: list[bytes] = []
    for part in _described(groups, reference, 1 if is_small else NUM_WORKERS):
        tokens = np.array(part.prompt_tokens, dtype=np.int64)
        tokens[list(part.uncounted)] = count_tokens(list(part.uncounted.values()), tokenizer)
        columns["prompt_tokens"].append(pa.array(tokens))
        columns["lost_characters"].append(_lost(part, tokenizer))
        for name, cells in part.columns.items():
            columns[name].append(cells)
        keys += part.keys
    frame = pd.DataFrame({name: _series(name, pa.chunked_array(cells)) for name, cells in columns.items()})
    _add_gold_states(frame)
    frame["golds_of_prompt"] = _golds_of_prompt(keys, frame["gold"])
    return frame[list(PROBLEM_COLUMNS)]


def traces_view(prepared: Path, problems: pd.DataFrame, tokenizer: Any) -> pd.DataFrame:
    """`TRACE_COLUMNS`. problems: `PROBLEM_COLUMNS`; problem: `known` if it is a training problem;
    response_tokens: end of sequence included."""
    import pandas as pd

    traces = _traces(prepared)
    training = problems["id"][problems["split"] == "train"]
    known = set(training[training.isin(list(traces))])
    ids = [id_ for id_, responses in traces.items() for _ in responses]
    responses = [response for each in traces.values() for response in each]
    encoded = tokenizer(responses, add_special_tokens=False)["input_ids"] if responses else []
    return pd.DataFrame(
        {
            "id": ids,
            "problem": ["known" if id_ in known else "unknown" for id_ in ids],
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


def _id_and_text(groups: Iterable[Problems]) -> Iterator[tuple[str, str]]:
    for group in groups:
        yield from zip(group.id.to_pylist(), group.compared(), strict=True)


def _frame(groups: Sequence[Problems], tokenizer: Any) -> int:
    first = next((group.prompt[0].as_py() for group in groups if len(group.prompt)), None)
    return 0 if first is None else frame_bytes(first, tokenizer)


def _series(name: str, cells: pa.ChunkedArray) -> pd.Series:
    import pyarrow as pa

    few = pa.types.is_string(cells.type) and name not in FREE_TEXT
    return (cells.dictionary_encode() if few else cells).to_pandas()


def _lost(part: Described, tokenizer: Any) -> pa.Array:
    import pyarrow as pa

    lost = lost_of(set().union(*part.rare.values()), tokenizer)
    cells = [NONE] * len(part.prompt_tokens)
    for row, characters in part.rare.items():
        cells[row] = "".join(character for character in characters if character in lost) or NONE
    return pa.array(cells, pa.string())


def _add_gold_states(frame: pd.DataFrame) -> None:
    """The columns that `gold_states` gives, each different gold graded once."""
    import numpy as np
    import pandas as pd

    numbers = frame.groupby(["gold", "grader"], dropna=False, sort=False).ngroup().to_numpy()
    _, first = np.unique(numbers, return_index=True)  # the rows where each different pair stands first
    pairs = frame.loc[first, ["gold", "grader"]].astype(object)
    asked = [(gold, grader) for gold, grader in pairs.where(pairs.notna(), None).to_numpy()]
    states = gold_states(asked)
    for position, name in enumerate(("gold_state", "gold_grade", "other_grade")):
        words = pd.Categorical([states[each][position] for each in asked])
        frame[name] = words.take(numbers)


def _golds_of_prompt(keys: Sequence[bytes], golds: pd.Series) -> Any:
    """How many different golds each row's prompt has. keys: 16 bytes, equal for equal prompts."""
    import numpy as np
    import pandas as pd

    halves = np.frombuffer(b"".join(keys), dtype=np.int64).reshape(-1, 2)
    repeated = pd.DataFrame(halves).duplicated(keep=False).to_numpy()
    counts = np.ones(len(keys), dtype=np.int64)
    several: defaultdict[bytes, set[Any]] = defaultdict(set)
    rows = np.flatnonzero(repeated).tolist()
    for row in rows:
        several[keys[row]].add(golds.iloc[row])
    counts[rows] = [len(several[keys[row]]) for row in rows]
    return counts


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
    ids, responses = (column(table, name, path).to_pylist() for name in ("id", "response"))
    for id_, response in zip(ids, responses, strict=True):
        traces[id_].append(response)
    return dict(traces)
