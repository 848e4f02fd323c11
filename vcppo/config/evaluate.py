"""Section of stage evaluate: how each benchmark is asked, what fails it, what promotes a policy."""

from __future__ import annotations

from pydantic import model_validator

from vcppo.config.base import PositiveInt, SamplingConfig, Section, UnitInterval


class BenchmarkOverrides(Section):
    """What one benchmark does otherwise than `evaluate` and its declaration say
    (tasks/evaluation/benchmarks.py). What is not given stays."""

    name: str
    """Of the data source, as in data.sources."""
    samples_per_problem: PositiveInt | None = None
    sampling: SamplingConfig | None = None
    max_response_tokens: PositiveInt | None = None
    pass_at: tuple[PositiveInt, ...] | None = None
    max_problems: PositiveInt | None = None
    prompt_template: str | None = None
    """The user message, with `{problem}`."""
    max_parser_failure_rate: UnitInterval | None = None
    """Given as null: no limit for this benchmark."""

    @model_validator(mode="after")
    def _template(self) -> BenchmarkOverrides:
        if self.prompt_template is not None and self.prompt_template.count("{problem}") != 1:
            raise ValueError("prompt_template must contain {problem} exactly once")
        return self


class PromotionConfig(Section):
    """What the trained policy must show before it may take the place of the one before. Never fails a run."""

    min_average: UnitInterval = 0.0
    """Least avg@k on each benchmark."""
    require_improvement: bool = True
    """The 95 % interval of the paired difference must lie above zero on each benchmark."""
    benchmarks: tuple[str, ...] | None = None
    """Names of the benchmarks that count; None: all."""


class EvaluateConfig(Section):
    """avg@k with a question-clustered standard error, before and after training."""

    samples_per_problem: PositiveInt | None = None
    """None: what each benchmark declares (AIME and GPQA 32)."""
    sampling: SamplingConfig = SamplingConfig()
    max_response_tokens: PositiveInt | None = None
    """None: data.max_response_tokens."""
    pass_at: tuple[PositiveInt, ...] = (1,)
    """k of pass@k; those above a benchmark's samples are left out there."""
    max_problems: PositiveInt | None = None
    """Per benchmark, the first by id hash; None for all."""
    problems_per_shard: PositiveInt = 64
    max_parser_failure_rate: UnitInterval | None = 0.02
    """More responses than this share that end by themselves without a readable answer, or that the engine
    broke off, fail the evaluation: the prompt, the chat template, the grader or the server is wrong for this
    policy. None: no limit on the first."""
    benchmarks: tuple[BenchmarkOverrides, ...] = ()
    """Benchmarks that differ from the above."""
    promotion: PromotionConfig = PromotionConfig()

    @model_validator(mode="after")
    def _consistent(self) -> EvaluateConfig:
        names = [benchmark.name for benchmark in self.benchmarks]
        if len(set(names)) != len(names):
            raise ValueError(f"names in benchmarks must differ, got {names}")
        for pass_at, samples, where in [
            (self.pass_at, self.samples_per_problem, ""),
            *((b.pass_at, b.samples_per_problem, f" of benchmark {b.name}") for b in self.benchmarks),
        ]:
            too_large = [k for k in pass_at or () if samples is not None and k > samples]
            if too_large:
                raise ValueError(f"pass_at {too_large} exceed samples_per_problem ({samples}){where}")
        return self
