"""Where problems come from. Each source is pinned: by seed, by content hash or by hub revision."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vcppo.config.base import NonNegativeInt, PositiveInt, Section, UnitInterval

GraderName = Literal["aime", "math", "gpqa", "steps"]
SourceUse = Literal["train", "eval", "split"]
DatasetName = Literal[
    "dapo_math_17k",
    "dapo_math_17k_processed",
    "dapo_math_17k_slime",
    "gsm8k",
    "math",
    "math_500",
    "aime_2024",
    "aime_2024_maxwell_jia",
    "aime_2025_math_ai",
    "aime_2025_opencompass",
    "aime_2025_yentinglin",
    "aime_2025_matharena",
    "gpqa",
]
"""Datasets whose schema is known (tasks/sources/catalogue.py says where they are and what their rows look
like)."""


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
    """Who reads the answers: aime (integers 0-999), math (Math-Verify), gpqa (letters), steps (independent
    ones)."""
    licence: str = "unknown"
    unreadable_gold: Literal["stop", "drop"] = "stop"
    """What a gold answer does that the grader cannot read: end the stage, or drop the problem and list it."""
    remove_figures: bool | None = None
    """Drop problems that need a figure. None: from training sources yes, from benchmarks (`use: eval`) no,
    because a
    benchmark without some of its problems is another benchmark."""


class GeneratedSource(_SourceBase):
    """What the synthetic tasks share: their problems come from the seed."""

    kind: str
    num_problems: PositiveInt
    sft_traces_per_problem: NonNegativeInt = 1


class SyntheticSource(GeneratedSource):
    """A running sum modulo `modulus`, written out step by step (see tasks/sources/running_sum.py)."""

    kind: Literal["running_sum"] = "running_sum"
    num_digits: PositiveInt = 20
    """Digits to add up; the response grows linearly with it."""
    modulus: Annotated[int, Field(ge=2, le=1000)] = 5
    early_stop_fraction: UnitInterval = 0.5
    """Share of the SFT traces that stop early and answer with the running state: quitting is bad."""


class IndependentStepsSource(GeneratedSource):
    """Independent steps on digits of the policy's own choice, with chance slips (see
    tasks/sources/independent_steps.py)."""

    kind: Literal["independent_steps"] = "independent_steps"
    grader: Literal["steps"] = "steps"
    prompt_digits: Annotated[int, Field(ge=1, le=18)] = 6
    """Digits of the number that tells the problems apart."""
    num_steps: Annotated[int, Field(ge=2, le=10_000)] = 40
    """Steps of a whole response, four tokens each."""
    max_wrong: NonNegativeInt = 7
    """A response with more wrong steps is wrong."""
    uncertain_cells: Annotated[int, Field(ge=0, le=100)] = 40
    """Of the 100 pairs of digits, those in which SFT traces slip."""
    slip_rate: UnitInterval = 0.5
    """How often they slip there."""
    slips: Literal["left_open", "wrong_digit"] = "left_open"
    """What a slip writes: a question mark, or one of the nine wrong digits. A critic can learn to see the
    first from the outcomes of thousands of rollouts; the second it would have to calculate."""
    early_stop_fraction: UnitInterval = 0.05
    """Share of the SFT traces that quit before their last step: quitting is wrong."""

    @model_validator(mode="after")
    def _can_be_wrong(self) -> IndependentStepsSource:
        if self.max_wrong >= self.num_steps:
            raise ValueError(
                f"max_wrong ({self.max_wrong}) must be below num_steps ({self.num_steps}): nothing could be "
                "wrong"
            )
        return self


class _TableSource(_SourceBase):
    """What sources with rows and columns share."""

    dataset: DatasetName | None = None
    """Rows have the schema of this known dataset; None: they have the columns named below."""
    problem_column: str = "problem"
    """A dotted name reaches into structs and lists: `reward_model.ground_truth`, `prompt.0.content`."""
    answer_column: str = "answer"
    id_column: str | None = None
    """None: the id is derived from the problem's text."""
    solution_column: str | None = None
    """Worked solution, used as SFT trace; None: no SFT traces from this source."""

    @model_validator(mode="after")
    def _columns_or_dataset(self) -> _TableSource:
        given = sorted(name for name in self.model_fields_set if name.endswith("_column"))
        if self.dataset is not None and given:
            raise ValueError(f"dataset {self.dataset!r} has columns of its own: remove {', '.join(given)}")
        return self


class FileSource(_TableSource):
    """A local file (jsonl, parquet or csv) with a problem and an answer column."""

    kind: Literal["file"] = "file"
    path: str
    """Relative to the checkout, or absolute."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Hash of the file's bytes, so that a changed file is a changed configuration."""
    id_column: str | None = "id"
    """None: the id is derived from the problem's text."""


class HubSource(_TableSource):
    """A Hugging Face dataset at a pinned revision."""

    kind: Literal["hub"] = "hub"
    repository: str | None = Field(default=None, pattern=r"^[^/\s]+/[^/\s]+$")
    """`owner/name`; None: where the known `dataset` lives."""
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    """Commit of the dataset repository."""
    configuration: str | None = None
    """None: all configurations of a known `dataset`, else the repository's default."""
    split: str | None = None
    """None: the split of a known `dataset`, else `train`."""

    @model_validator(mode="after")
    def _somewhere(self) -> HubSource:
        if self.repository is None and self.dataset is None:
            raise ValueError("needs `dataset` (a known one) or `repository` (owner/name)")
        return self


Source = Annotated[
    SyntheticSource | IndependentStepsSource | FileSource | HubSource, Field(discriminator="kind")
]
