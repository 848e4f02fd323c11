"""Where problems come from, and what makes a clean set of them.

Adapters (one module a kind, each a function `read` that yields `Problem`s in the source's own order):
- `running_sum`  the synthetic task, from a seed
- `local_file`   jsonl, parquet or csv file, by content hash
- `hub`          Hugging Face dataset, by commit
- `columns`      rows of a table to problems, shared by the last two
- `problem`      the `Problem` itself, its id and the order of ids

Cleaning:
- `cleaning`     canonical golds; unique prompts with one gold each; held-out split

To add a kind: its section in `vcppo/config/sources.py`, a module here, and its branch in `read_source`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasks.sources import hub, local_file, running_sum
from tasks.sources.problem import Problem
from vcppo.config.sources import FileSource, HubSource, Source, SyntheticSource


def read_source(source: Source, seed: int) -> Iterator[Problem]:
    """The problems of one declared source. Raises DataError as its adapter does."""
    match source:
        case SyntheticSource():
            return running_sum.read(source, seed)
        case FileSource():
            return local_file.read(source)
        case HubSource():
            return hub.read(source)
