"""Source kind `hub`: a Hugging Face dataset at a pinned commit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.sources.catalogue import known_dataset, layout_of, split_of
from tasks.sources.columns import Row, problems_of
from tasks.sources.problem import Problem
from vcppo.config.sources import HubSource
from vcppo.errors import DataError

if TYPE_CHECKING:
    from datasets import Dataset

TOKEN = "HF_TOKEN"
"""Environment variable with the token for gated datasets. Its value appears in no message, record or file."""


def read(source: HubSource) -> Iterator[Problem]:
    """The problems of the dataset's configurations, one after the other, in its order.

    Raises DataError if the dataset cannot be had (no network, no such revision, gated and no token), saying
    which one it is and that a local file may stand in, or if a row is malformed.
    """
    return problems_of(_rows(source), layout_of(source), source.name)


def repository_of(source: HubSource) -> str:
    """`owner/name` of the dataset: the configured one, else the catalogue's."""
    known = known_dataset(source)
    if source.repository is not None:
        return source.repository
    assert known is not None  # the configuration asks for one of them
    return known.repository


def _rows(source: HubSource) -> Iterator[Row]:
    import datasets

    known = known_dataset(source)
    repository = repository_of(source)
    split = split_of(source)
    configurations: tuple[str | None, ...] = (source.configuration,)
    if source.configuration is None and known is not None:
        configurations = known.configurations
    token = os.environ.get(TOKEN) or None
    if known is not None and known.gated and token is None:
        raise DataError(
            f"source {source.name}: dataset {repository} is gated: accept its terms at "
            f"https://huggingface.co/datasets/{repository} and put your token into the environment "
            f"variable {TOKEN}; "
            f"{_stand_in(source)}"
        )
    for configuration in configurations:
        try:
            table = datasets.load_dataset(
                repository, name=configuration, split=split, revision=source.revision, token=token
            )
            _check_revision(table, source.revision)
        except Exception as error:  # the library raises whatever its transport, cache and builders raise
            reason = without_token(f"{type(error).__name__}: {error}".split("\n")[0].rstrip("."), token)
            raise DataError(
                f"source {source.name}: dataset {repository} (configuration {configuration or 'default'}, "
                f"split {split}) "
                f"at revision {source.revision} cannot be loaded: {reason}. Check the network, the "
                "revision and, for a "
                f"gated dataset, {TOKEN}; {_stand_in(source)}"
            ) from None
        name = f"{repository}@{source.revision[:12]} {configuration or 'default'}/{split}"
        for number, row in enumerate(table, 1):
            yield f"{name}: row {number}", row


def _check_revision(table: Dataset, revision: str) -> None:
    """Raises LookupError for rows of another commit: when the hub refuses or does not answer, the library
    gives what it last put into its cache, whatever was asked for. Its folders are named by commit."""
    others = sorted({Path(file["filename"]).parent.name for file in table.cache_files} - {revision})
    if others:
        raise LookupError(f"the hub did not give it, and the cache holds another revision, {others[0]}")


def without_token(text: str, token: str | None) -> str:
    """The text with the token, should it occur, blotted out."""
    return text if token is None else text.replace(token, f"<{TOKEN}>")


def _stand_in(source: HubSource) -> str:
    dataset = f"`dataset: {source.dataset}`" if source.dataset else "the same `*_column` keys"
    return (
        "or download it where there is a network and declare its jsonl, parquet or csv file as a source "
        f"`kind: file` with `path`, `sha256` and {dataset}"
    )
