"""Source kind `hub`: a Hugging Face dataset at a pinned commit."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tasks.sources.columns import Row, problems_of
from tasks.sources.problem import Problem
from vcppo.config.sources import HubSource
from vcppo.errors import DataError


def read(source: HubSource) -> Iterator[Problem]:
    """The problems of the dataset, in its order.

    Raises DataError if the dataset cannot be had (no network, no such revision, gated), saying which one
    and that a local file may stand in, or if a row is malformed.
    """
    return problems_of(_rows(source), source)


def _rows(source: HubSource) -> Iterator[Row]:
    import datasets

    name = f"{source.repository}@{source.revision[:12]} split {source.split}"
    token = os.environ.get("HF_TOKEN") or None
    try:
        table = datasets.load_dataset(
            source.repository,
            name=source.configuration,
            split=source.split,
            revision=source.revision,
            token=token,
        )
    except Exception as error:  # the library raises whatever its transport, cache and builders raise
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        raise DataError(
            f"source {source.name}: dataset {source.repository} at revision {source.revision} cannot be "
            "loaded "
            f"({reason if token is None else reason.replace(token, '<HF_TOKEN>')}). Check the network, "
            "the revision, and "
            "for a gated dataset HF_TOKEN in the environment; or download the file elsewhere and declare "
            "it as a "
            "source of kind `file` with the same name"
        ) from None
    for number, row in enumerate(table, 1):
        yield f"{name}: row {number}", row
