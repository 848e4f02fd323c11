"""Known datasets: where they live, what their rows look like, what must be stripped from them.

Revisions are not part of it: which commit a result comes from is the configuration's to say. To add a
dataset: its name in `vcppo.config.sources.DatasetName`, an entry here, and a test on a small file of its
schema.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasks.sources.boxes import gsm8k_answer, last_boxed
from tasks.sources.layout import Layout, Template, declared_layout, without_template
from vcppo.config.sources import DatasetName, FileSource, HubSource


@dataclass(frozen=True)
class KnownDataset:
    """One dataset on the Hugging Face hub."""

    repository: str
    layout: Layout
    split: str = "train"
    benchmark_split: str | None = None
    """What `use: eval` reads; None: there is only `split`."""
    configurations: tuple[str | None, ...] = (None,)
    """Read one after the other when the source names none; None is the repository's default."""
    gated: bool = False
    """Needs a token of somebody who accepted its terms."""
    licence: str = "see the dataset's page"


_DAPO_END = '\n\nRemember to put your answer on its own line after "Answer:".'
DAPO_TEMPLATES = (
    Template(
        "Solve the following math problem step by step. The last line of your response should be of the form "
        "Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n",
        _DAPO_END,
    ),
    Template(
        "Solve the following math problem step by step. The last line of your response should be of the form "
        "Answer: \\boxed{$Answer} where $Answer is the answer to the problem.\n\n",
        _DAPO_END,
    ),
)
"""Around every problem of DAPO-Math-17k, and around those of its slime export."""

MATH_SUBJECTS = (
    "algebra",
    "counting_and_probability",
    "geometry",
    "intermediate_algebra",
    "number_theory",
    "prealgebra",
    "precalculus",
)

CATALOGUE: dict[DatasetName, KnownDataset] = {
    # 1,791,700 rows are 17,917 problems, each a hundred times
    "dapo_math_17k": KnownDataset(
        repository="BytedTsinghua-SIA/DAPO-Math-17k",
        layout=Layout(
            problem="prompt.0.content",
            answer="reward_model.ground_truth",
            read_problem=without_template(*DAPO_TEMPLATES),
        ),
        licence="Apache-2.0",
    ),
    "dapo_math_17k_processed": KnownDataset(
        repository="open-r1/DAPO-Math-17k-Processed",
        layout=Layout(problem="prompt", answer="solution"),
        configurations=("en",),
        licence="Apache-2.0",
    ),
    "dapo_math_17k_slime": KnownDataset(
        repository="zhuzilin/dapo-math-17k",
        layout=Layout(
            problem="prompt.0.content", answer="label", read_problem=without_template(*DAPO_TEMPLATES)
        ),
        licence="Apache-2.0",
    ),
    "gsm8k": KnownDataset(
        repository="openai/gsm8k",
        layout=Layout(problem="question", answer="answer", solution="answer", read_answer=gsm8k_answer),
        benchmark_split="test",
        configurations=("main",),
        licence="MIT",
    ),
    "math": KnownDataset(
        repository="EleutherAI/hendrycks_math",
        layout=Layout(problem="problem", answer="solution", solution="solution", read_answer=last_boxed),
        benchmark_split="test",
        configurations=MATH_SUBJECTS,
        licence="MIT",
    ),
    "math_500": KnownDataset(
        repository="HuggingFaceH4/MATH-500",
        layout=Layout(problem="problem", answer="answer", id="unique_id", solution="solution"),
        split="test",
        licence="MIT",
    ),
    "aime_2024": KnownDataset(
        repository="HuggingFaceH4/aime_2024",
        layout=Layout(problem="problem", answer="answer", id="id", solution="solution"),
        licence="problems copyright MAA",
    ),
    "aime_2024_maxwell_jia": KnownDataset(
        repository="Maxwell-Jia/AIME_2024",
        layout=Layout(problem="Problem", answer="Answer", id="ID", solution="Solution"),
        licence="problems copyright MAA",
    ),
    "aime_2025_math_ai": KnownDataset(
        repository="math-ai/aime25",
        layout=Layout(problem="problem", answer="answer", id="id"),
        split="test",
        licence="Apache-2.0; problems copyright MAA",
    ),
    "aime_2025_opencompass": KnownDataset(
        repository="opencompass/AIME2025",
        layout=Layout(problem="question", answer="answer"),
        split="test",
        configurations=("AIME2025-I", "AIME2025-II"),
        licence="problems copyright MAA",
    ),
    "aime_2025_yentinglin": KnownDataset(
        repository="yentinglin/aime_2025",
        layout=Layout(problem="problem", answer="answer", id="id"),
        licence="problems copyright MAA",
    ),
    "aime_2025_matharena": KnownDataset(
        repository="MathArena/aime_2025",
        layout=Layout(problem="problem", answer="answer", id="problem_idx"),
        licence="problems copyright MAA",
    ),
    "gpqa": KnownDataset(
        repository="Idavidrein/gpqa",
        layout=Layout(
            problem="Question",
            answer="Correct Answer",
            id="Record ID",
            wrong_options=("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
        ),
        configurations=("gpqa_diamond",),
        gated=True,
        licence="CC-BY-4.0",
    ),
}


def known_dataset(source: FileSource | HubSource) -> KnownDataset | None:
    """The catalogue's entry that a source names, if it names one."""
    return None if source.dataset is None else CATALOGUE[source.dataset]


def split_of(source: HubSource) -> str:
    """The configured split, else the catalogue's for this use, else `train`."""
    known = known_dataset(source)
    if source.split is not None or known is None:
        return source.split or "train"
    return known.benchmark_split or known.split if source.use == "eval" else known.split


def layout_of(source: FileSource | HubSource) -> Layout:
    """The layout of a source's rows."""
    known = known_dataset(source)
    return declared_layout(source) if known is None else known.layout


def licence_of(source: FileSource | HubSource) -> str:
    """The configured licence, else the catalogue's."""
    known = known_dataset(source)
    return known.licence if known is not None and source.licence == "unknown" else source.licence
