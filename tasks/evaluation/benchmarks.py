"""Benchmarks as declarations: whose rows, how they are asked, who grades, how often. The configuration has
the last word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.evaluation.options import asked
from vcppo.config import Config
from vcppo.config.base import SamplingConfig
from vcppo.config.evaluate import BenchmarkOverrides
from vcppo.config.sources import DatasetName, GeneratedSource, GraderName, Source
from vcppo.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from training.generation.prompts import Problem

MIN_PROBLEMS = 2
"""A paired difference with an interval needs so many questions."""


@dataclass(frozen=True)
class Declaration:
    """What is known of a benchmark before any configuration."""

    datasets: tuple[DatasetName, ...]
    """Known datasets whose rows it asks (their loaders are in tasks/sources/catalogue.py)."""
    names: tuple[str, ...]
    """Names of a source that is no known dataset but holds the same problems."""
    graders: tuple[GraderName, ...]
    """Who may read the answers."""
    samples_per_problem: int
    prompt_template: str | None = None
    """None: the prompt that the policy is trained with."""
    sampling: SamplingConfig | None = None
    """None: evaluate.sampling."""


DECLARATIONS: Mapping[str, Declaration] = {
    "aime_2024": Declaration(
        datasets=("aime_2024", "aime_2024_maxwell_jia"),
        names=("aime24", "aime-24", "aime2024", "aime-2024"),
        graders=("aime", "math"),
        samples_per_problem=32,
    ),
    "aime_2025": Declaration(
        datasets=(
            "aime_2025_math_ai",
            "aime_2025_opencompass",
            "aime_2025_yentinglin",
            "aime_2025_matharena",
        ),
        names=("aime25", "aime-25", "aime2025", "aime-2025"),
        graders=("aime", "math"),
        samples_per_problem=32,
    ),
    "math_500": Declaration(
        datasets=("math_500",),
        names=("math500", "math-500"),
        graders=("math",),
        samples_per_problem=4,
    ),
    "gsm8k": Declaration(
        datasets=("gsm8k",),
        names=("gsm8k",),
        graders=("math",),
        samples_per_problem=4,
    ),
    "gpqa_diamond": Declaration(
        datasets=("gpqa",),
        names=("gpqa", "gpqa-diamond"),
        graders=("gpqa",),
        samples_per_problem=32,
        prompt_template=(
            "{problem}\n\nReason step by step and give the letter of the right option in \\boxed{}."
        ),
    ),
    "running_sum": Declaration(
        datasets=(),
        names=("running-sum",),
        graders=("aime", "math"),
        samples_per_problem=4,
    ),
    "independent_steps": Declaration(
        datasets=(),
        names=("independent-steps",),
        graders=("steps",),
        samples_per_problem=4,
    ),
}

UNDECLARED = Declaration(
    datasets=(), names=(), graders=("aime", "math", "gpqa", "steps"), samples_per_problem=32
)
"""Any other evaluation source."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of this configuration with its problems, every setting resolved."""

    name: str
    problems: Sequence[Problem]
    samples_per_problem: int
    sampling: SamplingConfig
    max_response_tokens: int
    pass_at: tuple[int, ...]
    max_parser_failure_rate: float | None

    def settings(self) -> dict[str, object]:
        """What metrics/evaluate.json says of it."""
        return {
            "num_problems": len(self.problems),
            "samples_per_problem": self.samples_per_problem,
            "max_response_tokens": self.max_response_tokens,
            **self.sampling.model_dump(mode="json"),
        }


def declaration_of(source: Source) -> Declaration:
    """The declaration of a source: by its known dataset, else by its kind or name."""
    dataset = None if isinstance(source, GeneratedSource) else source.dataset
    if dataset is not None:
        return next((d for d in DECLARATIONS.values() if dataset in d.datasets), UNDECLARED)
    if isinstance(source, GeneratedSource):
        return DECLARATIONS[source.kind]
    return next((d for d in DECLARATIONS.values() if source.name.replace("_", "-") in d.names), UNDECLARED)


def resolve(config: Config, problems: Sequence[Problem]) -> list[Benchmark]:
    """The benchmarks of a configuration, in the order of data.sources.

    problems: all rows of data/prepared/eval.parquet.

    Raises ConfigurationError (overrides of an unknown benchmark, a grader that cannot read its answers) and
    DataError (a benchmark without problems, or too few to compare two policies on).
    """
    by_source: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        by_source[problem.data_source].append(problem)
    expected = [s for s in config.data.sources if s.use == "eval" or (s.use == "split" and s.eval_count)]
    overrides = {benchmark.name: benchmark for benchmark in config.evaluate.benchmarks}
    names = [source.name for source in expected]
    named = {"evaluate.benchmarks": overrides, "evaluate.promotion.benchmarks": _gated(config)}
    for key, chosen in named.items():
        if unknown := sorted(set(chosen) - set(names)):
            raise ConfigurationError(f"{key}: got {', '.join(unknown)}, allowed are {', '.join(names)}")
    return [
        _benchmark(config, source, by_source[source.name], overrides.get(source.name)) for source in expected
    ]


def _benchmark(
    config: Config, source: Source, problems: Sequence[Problem], override: BenchmarkOverrides | None
) -> Benchmark:
    declared, evaluate = declaration_of(source), config.evaluate
    if source.grader not in declared.graders:
        raise ConfigurationError(
            f"data.sources: benchmark {source.name} is graded by {' or '.join(declared.graders)}, got grader "
            f"{source.grader!r}"
        )
    given = {} if override is None else {key: getattr(override, key) for key in override.model_fields_set}
    # only the limit of parser failures means something when it is given as null
    limit = given.pop("max_parser_failure_rate", evaluate.max_parser_failure_rate)
    given = {key: value for key, value in given.items() if value is not None}
    samples = given.get("samples_per_problem", evaluate.samples_per_problem or declared.samples_per_problem)
    template = given.get("prompt_template", declared.prompt_template)
    if "pass_at" in given and max(given["pass_at"], default=1) > samples:
        raise ConfigurationError(
            f"evaluate.benchmarks: pass_at {list(given['pass_at'])} of {source.name} exceed its {samples} "
            "samples a problem"
        )
    from training.generation.prompts import first_by_hash

    chosen = first_by_hash(problems, given.get("max_problems", evaluate.max_problems))
    if len(chosen) < MIN_PROBLEMS:
        raise DataError(
            f"benchmark {source.name}: has {len(chosen)} problems in data/prepared/eval.parquet, needed are "
            f"at least {MIN_PROBLEMS} to compare two policies; data/prepared/card.json says what became of "
            "its rows"
        )
    return Benchmark(
        name=source.name,
        problems=[problem if template is None else asked(problem, template) for problem in chosen],
        samples_per_problem=samples,
        sampling=given.get("sampling", declared.sampling or evaluate.sampling),
        max_response_tokens=given.get(
            "max_response_tokens", evaluate.max_response_tokens or config.data.max_response_tokens
        ),
        pass_at=tuple(k for k in given.get("pass_at", evaluate.pass_at) if k <= samples),
        max_parser_failure_rate=limit,
    )


def _gated(config: Config) -> Sequence[str]:
    return config.evaluate.promotion.benchmarks or ()
