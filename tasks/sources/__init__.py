"""Where problems come from, and what makes one clean set of them.

Adapters (one module a kind, each a function `read` that yields `Problem`s in the source's own order):
- `running_sum`, `independent_steps`   the synthetic tasks, from a seed
- `local_file`   jsonl, parquet or csv file, by content hash
- `hub`          Hugging Face dataset, by commit
What they share:
- `problem`      the `Problem` itself, its id and the order of ids
- `columns`, `layout`   rows of a table to problems: which column holds what, templates to strip
- `catalogue`    the layouts of known datasets (DAPO, GSM8K, MATH, AIME, GPQA)
- `boxes`        answers inside worked solutions; solutions as responses to imitate
- `multiple_choice`     options in an order of their own for every sample
Cleaning, in this order:
- `cleaning`     of one source: figures, canonical golds, unique prompts with one gold each; the held-out
  split
- `figures`, `words`    what refers to a figure; how two problems are compared
- `agreement`    when two golds are one
- `assembly`     of all sources: shared prompts, near-duplicates, hold-out, decontamination, balance
- `near_duplicates`, `contamination`, `mixture`   its parts
- `ledger`, `card`      what became of every row, and the dataset card made of it
- `tables`       the parquet files

To add a kind of source: its section in `vcppo/config/sources.py`, a module here, and its branch in
`read_source`. To add a known dataset: `catalogue` says how.
"""

from __future__ import annotations

from collections.abc import Iterator

from tasks.sources import hub, independent_steps, local_file, running_sum
from tasks.sources.problem import Problem
from vcppo.config.sources import FileSource, HubSource, IndependentStepsSource, Source, SyntheticSource


def read_source(source: Source, seed: int) -> Iterator[Problem]:
    """The problems of one declared source. Raises DataError as its adapter does."""
    match source:
        case SyntheticSource():
            return running_sum.read(source, seed)
        case IndependentStepsSource():
            return independent_steps.read(source, seed)
        case FileSource():
            return local_file.read(source)
        case HubSource():
            return hub.read(source)
