"""Source kind `file`: a local jsonl, parquet or csv file, known by the hash of its bytes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.sources.catalogue import layout_of
from tasks.sources.columns import Row, problems_of
from tasks.sources.problem import Problem
from vcppo.config.sources import FileSource
from vcppo.errors import DataError
from vcppo.files import sha256_file
from vcppo.workspace import checkout_root


def read(source: FileSource) -> Iterator[Problem]:
    """The problems of the file, in its order.

    Raises DataError if the file is missing, is not the one whose hash is declared (the message gives the
    real hash), is of an unknown kind, or has a malformed row (named by its number, from 1; a csv header
    does not count).
    """
    path = checkout_root() / source.path
    reader = READERS.get(path.suffix)
    if reader is None:
        raise DataError(
            f"{path}: source {source.name}: file kind {path.suffix!r}, allowed are {', '.join(READERS)}"
        )
    if not path.is_file():
        raise DataError(
            f"{path}: source {source.name}: there is no such file (looked in {path.resolve().parent}); "
            "put it there or "
            "mend `path` of the source"
        )
    try:
        digest = sha256_file(path)
    except OSError as error:
        raise DataError(f"{path}: source {source.name}: cannot be read: {error.strerror}") from None
    if digest != source.sha256:
        raise DataError(
            f"{path}: source {source.name}: the file's sha256 is {digest}, declared is {source.sha256}; "
            "if the file is "
            "the one you mean, paste its hash into `sha256` of the source"
        )
    layout = layout_of(source)
    return problems_of(reader(path, layout.roots()), layout, source.name)


def _read_jsonl(path: Path, columns: list[str]) -> Iterator[Row]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}: row {number}: is not valid JSON: {error}") from None
            if not isinstance(row, dict):
                raise DataError(
                    f"{path}: row {number}: holds a {type(row).__name__}, expected an object with columns"
                )
            if b"\\u" in line:  # else no text can hold half a pair
                _check_text(f"{path}: row {number}", row, columns)
            yield f"{path}: row {number}", row


def _check_text(where: str, row: Mapping[str, Any], columns: list[str]) -> None:
    """Raise DataError for a column with half of a surrogate pair: JSON can spell it, no file can store it."""
    for column in columns:
        try:
            json.dumps(row.get(column), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise DataError(
                f"{where}: column {column!r} holds {half!r}, half of a surrogate pair and no character; "
                "mend or remove the row"
            ) from None


def _read_csv(path: Path, columns: list[str]) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        number = 0
        try:
            for number, row in enumerate(csv.DictReader(stream, strict=True), 1):
                if None in row or None in row.values():
                    raise DataError(f"{path}: row {number}: has not as many cells as the header")
                yield f"{path}: row {number}", row
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"{path}: row {number + 1}: is not valid CSV in UTF-8: {error}") from None


def _read_parquet(path: Path, columns: list[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            # a missing column is reported by the first row, with the names that there are
            wanted = present if len(present) == len(columns) else None
            number = 0
            for batch in file.iter_batches(batch_size=8192, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}: row {number}", row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # corrupt pages are a plain OSError
        raise DataError(f"{path}: is not a readable parquet file: {error}") from None


READERS: dict[str, Callable[[Path, list[str]], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
}
"""By file name ending. To add a kind: a function that yields (where, row)."""
