"""The prepared problems as columns, read row group by row group."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcppo.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@dataclass(frozen=True)
class Problems:
    """Columns of some prepared problems, one entry a problem; `id` and `problem` hold no null."""

    id: pa.StringArray
    source: pa.StringArray
    grader: pa.StringArray
    gold: pa.StringArray
    problem: pa.StringArray
    options: pa.ListArray
    prompt: pa.ListArray
    """Chat messages: at least one each, with a role and a content."""

    def compared(self) -> list[str]:
        """The text that makes a problem another one: the order of its options does not."""
        texts = self.problem.to_pylist()
        if not len(self.options.flatten()):
            return texts
        options = self.options.to_pylist()
        return [
            "\n".join([text, *sorted(own)]) if own else text for text, own in zip(texts, options, strict=True)
        ]


class Prompts:
    """Chat messages of many prompts as flat columns."""

    def __init__(self, rows: Problems) -> None:
        messages = rows.prompt.flatten()
        self.roles, self.contents = messages.field("role"), messages.field("content")
        self.offsets = rows.prompt.offsets.to_numpy() - rows.prompt.offsets[0].as_py()

    def last(self) -> pa.StringArray:
        """Content of each prompt's last message."""
        import pyarrow as pa

        return self.contents.take(pa.array(self.offsets[1:] - 1))

    def num_bytes(self) -> np.ndarray:
        """Bytes of each prompt's contents."""
        import numpy as np
        import pyarrow.compute as pc

        return np.add.reduceat(pc.binary_length(self.contents).to_numpy().astype(np.int64), self.offsets[:-1])

    def joined(self) -> list[str]:
        """Each prompt as one text, roles included."""
        import pyarrow.compute as pc

        return self._by_prompt(pc.binary_join_element_wise(self.roles, self.contents, "\0"), "\0").to_pylist()

    def texts(self) -> pa.StringArray:
        """Each prompt's contents as one text."""
        return self._by_prompt(self.contents, "")

    def _by_prompt(self, messages: pa.StringArray, separator: str) -> pa.StringArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(messages) == len(self.offsets) - 1:
            return messages
        return pc.binary_join(
            pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), messages), separator
        )


def num_groups_and_rows(path: Path) -> tuple[int, int]:
    """Row groups and rows of a prepared file. Raises DataError if it is missing or torn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    return metadata.num_row_groups, metadata.num_rows


def read_group(path: Path, group: int) -> Problems:
    """One row group. Raises DataError if the file is torn, lacks a column, or a row lacks its text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read_row_group(group)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    problems = Problems(
        id=column(table, "extra_info.id", path),
        source=column(table, "data_source", path),
        grader=column(table, "extra_info.grader", path),
        gold=column(table, "reward_model.ground_truth", path),
        problem=column(table, "extra_info.problem", path),
        options=column(table, "extra_info.options", path),
        prompt=column(table, "prompt", path),
    )
    _check_texts(problems, path)
    return problems


def column(table: pa.Table, name: str, path: Path) -> Any:
    """One column as an array; a dotted name reaches into a struct. Raises DataError if it is not there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    top, _, inner = name.partition(".")
    present = table.column_names
    if top in present and inner:
        present = [f"{top}.{field.name}" for field in table.schema.field(top).type]
    if name not in present:
        raise DataError(f"{path}: has no column {name!r}, only {', '.join(present)}; run `dvc repro prepare`")
    values = table.column(top)
    chunks = (pc.struct_field(values, inner) if inner else values).combine_chunks()
    return chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a missing or torn file."""
    return DataError(f"{path}: is no readable parquet file ({error}); run `dvc repro prepare` again")


def _check_texts(problems: Problems, path: Path) -> None:
    import pyarrow.compute as pc

    messages = problems.prompt.flatten()
    lengths = pc.fill_null(pc.list_value_length(problems.prompt), 0)
    texts = (messages.field("role"), messages.field("content"))
    lacking = {
        "extra_info.id": problems.id.null_count > 0,
        "extra_info.problem": problems.problem.null_count > 0,
        "prompt": bool(pc.any(pc.equal(lengths, 0)).as_py()) or any(text.null_count for text in texts),
    }
    if missing := [name for name, lacks in lacking.items() if lacks]:
        raise DataError(
            f"{path}: rows without a value in {', '.join(missing)}; run `dvc repro prepare` again"
        )
