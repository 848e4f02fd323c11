"""Where problems come from. Each source is pinned: by seed, by content hash or by hub revision."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vcppo.config.base import NonNegativeInt, PositiveInt, Section, UnitInterval

GraderName = Literal["aime", "math", "gpqa"]
SourceUse = Literal["train", "eval", "split"]


class _SourceBase(Section):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$")
    """Becomes `data_source` of each row and the benchmark's name in the evaluation table."""
    use: SourceUse = "split"
    """`train`, `eval`, or `split`: eval_count problems are held out by the hash of their id."""
    eval_count: NonNegativeInt = 0
    """How many problems `split` holds out for evaluation."""
    max_count: PositiveInt | None = None
    """Take at most this many problems (the first by id hash), None for all."""
    grader: GraderName = "aime"
    """Who reads the answers: aime (integers 0-999), math (Math-Verify), gpqa (letters)."""
    licence: str = "unknown"


class SyntheticSource(_SourceBase):
    """A running sum modulo `modulus`, written out step by step (see tasks/sources/running_sum.py)."""

    kind: Literal["running_sum"] = "running_sum"
    num_problems: PositiveInt
    num_digits: PositiveInt = 20
    """Digits to add up; the response grows linearly with it."""
    modulus: Annotated[int, Field(ge=2, le=1000)] = 5
    early_stop_fraction: UnitInterval = 0.5
    """Share of the SFT traces that stop early and answer with the running state: quitting is bad."""
    sft_traces_per_problem: NonNegativeInt = 1


class FileSource(_SourceBase):
    """A local file (jsonl, parquet or csv) with a problem and an answer column."""

    kind: Literal["file"] = "file"
    path: str
    """Relative to the checkout, or absolute."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Hash of the file's bytes, so that a changed file is a changed configuration."""
    problem_column: str = "problem"
    answer_column: str = "answer"
    id_column: str | None = "id"
    """None: the id is derived from the problem's text."""
    solution_column: str | None = None
    """Worked solution, used as SFT trace; None: no SFT traces from this source."""


class HubSource(_SourceBase):
    """A Hugging Face dataset at a pinned revision."""

    kind: Literal["hub"] = "hub"
    repository: str = Field(pattern=r"^[^/\s]+/[^/\s]+$")
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    """Commit of the dataset repository."""
    configuration: str | None = None
    split: str = "train"
    problem_column: str = "problem"
    answer_column: str = "answer"
    id_column: str | None = None
    solution_column: str | None = None


Source = Annotated[SyntheticSource | FileSource | HubSource, Field(discriminator="kind")]
