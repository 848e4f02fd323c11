"""One section per pipeline stage, and the whole: `Config`. Stage train has a module of its own, `train`.

The papers' values are in profiles/.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vcppo.config.ablation import AblationConfig, row_config
from vcppo.config.base import (
    BetweenZeroAndOne,
    NonNegativeInt,
    OptimizerConfig,
    PositiveFloat,
    PositiveInt,
    SamplingConfig,
    Section,
)
from vcppo.config.evaluate import EvaluateConfig
from vcppo.config.model import ModelConfig
from vcppo.config.sources import Source
from vcppo.config.train import GaeConfig as GaeConfig
from vcppo.config.train import RewardConfig as RewardConfig
from vcppo.config.train import TrainConfig


class DataConfig(Section):
    """Stages prepare and validate."""

    sources: tuple[Source, ...] = Field(min_length=1)
    prompt_template: str = "{problem}"
    """The user message; `{problem}` is replaced by the problem's text."""
    system_prompt: str | None = None
    max_prompt_tokens: PositiveInt
    """Longest prompt in tokens of the training tokenizer, chat template included; validation refuses more."""
    max_response_tokens: PositiveInt
    """Longest response in tokens: SFT traces, rollouts, training; evaluation may set its own."""
    near_duplicate_similarity: Annotated[float, Field(gt=0.0, le=1.0)] | None = 0.6
    """Training problems that share so much of their wording (Jaccard index of three-word shingles), their
    numbers, operators and gold answer are one problem; None turns the search off. Generated sources are
    left out of it."""
    contamination_coverage: Annotated[float, Field(gt=0.0, le=1.0)] | None = 0.5
    """A training problem that shares this part of its eight-word shingles with an evaluation problem (of the
    shorter one of both) is dropped; None drops exact matches only."""
    max_source_share: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """No source may give more than this share of the training problems; None leaves the mixture as it is."""
    min_train_problems: PositiveInt = 1
    """Fewer training problems fail validation."""
    max_train_problems: PositiveInt | None = None
    """More training problems fail validation; None for no bound."""
    languages: tuple[str, ...] = ("en",)
    """Languages that are expected, told by script: en (Latin), zh (Han), other."""
    severity: dict[str, Literal["stop", "warn"]] = Field(default_factory=dict)
    """What a failing expectation does, by its name, where that should differ from
    tasks/expectations/suites.py."""

    @model_validator(mode="after")
    def _template_and_names(self) -> DataConfig:
        if self.prompt_template.count("{problem}") != 1:
            raise ValueError("prompt_template must contain {problem} exactly once")
        names = [source.name for source in self.sources]
        if len(set(names)) != len(names):
            raise ValueError(f"source names must differ, got {names}")
        feeding = sum(source.use != "eval" for source in self.sources)
        if self.max_source_share is not None and feeding * self.max_source_share < 1:
            raise ValueError(
                f"max_source_share {self.max_source_share} cannot be kept by {feeding} training sources: "
                f"the least that {feeding} can keep is {1 / max(feeding, 1):.3g}"
            )
        return self


class SftConfig(Section):
    """Cold start of the policy: imitation of the prepared SFT traces."""

    enabled: bool = True
    """False: the policy starts as the given model."""
    optimizer: OptimizerConfig
    batch_size: PositiveInt = 64
    num_epochs: PositiveFloat = 1.0
    save_every_steps: PositiveInt = 100


class RolloutsConfig(Section):
    """Responses of the frozen SFT policy, the data of value pretraining (VC-PPO section 3, step 1)."""

    num_prompts: PositiveInt
    """Training prompts to use (the first by id hash); more than there are means all."""
    samples_per_prompt: PositiveInt = 4
    sampling: SamplingConfig = SamplingConfig()
    prompts_per_shard: PositiveInt = 64


class RewardModelConfig(Section):
    """Bradley-Terry reward model on pairs of SFT rollouts; only trained when the critic starts from it."""

    optimizer: OptimizerConfig
    batch_size: PositiveInt = 32
    num_epochs: PositiveFloat = 1.0
    samples_per_prompt: PositiveInt = 4
    """Responses drawn per prompt, from which right/wrong pairs are made."""
    num_prompts: PositiveInt = 256
    truncated_prefixes_worst: bool = True
    """Add truncated responses as the worst class: the bias of reward models trained on finished answers."""


class CriticGate(Section):
    """What a value-pretrained critic must reach on held-out rollouts before PPO may start from it."""

    min_explained_variance: float | None = Field(default=-0.05, le=1.0)
    """None: not asked for (returns that are all the same have none)."""
    max_abs_value_bias: PositiveFloat = 0.25
    """Largest |mean(V - R)|, in units of the reward."""


class PretrainCriticConfig(Section):
    """Value pretraining on Monte-Carlo returns of the frozen policy (VC-PPO section 3.1, lambda = 1)."""

    start_from: Literal["sft", "reward_model"] = "sft"
    """Trunk of the critic: the SFT policy, or the reward model as in the paper."""
    optimizer: OptimizerConfig
    batch_size: PositiveInt = 64
    """Responses per update."""
    max_epochs: PositiveFloat = 4
    patience: PositiveInt = 3
    """Stop after this many held-out evaluations without a better value loss."""
    evaluations_per_epoch: PositiveInt = 4
    held_out_fraction: BetweenZeroAndOne = 0.1
    """Share of the prompts (not responses) kept for measuring."""
    gate: CriticGate = CriticGate()


class Config(Section):
    """Everything that identifies a result."""

    profile: str = Field(pattern=r"^[a-z0-9][a-z0-9.\-]*$")
    """Name of the profile these values come from; shown in reports."""
    seed: NonNegativeInt = 1
    """All randomness derives from it."""
    model: ModelConfig
    data: DataConfig
    sft: SftConfig
    reward_model: RewardModelConfig
    rollouts: RolloutsConfig
    pretrain_critic: PretrainCriticConfig
    train: TrainConfig
    evaluate: EvaluateConfig
    ablation: AblationConfig | None = None
    """A study: training runs side by side. Only read by the pipeline in ablation/."""

    @model_validator(mode="after")
    def _every_row_is_a_configuration(self) -> Config:
        if self.ablation is None:
            return self
        longest = max(row_config(self, row, 0).train.num_steps for row in self.ablation.rows)
        if late := [step for step in self.ablation.evaluate_steps if step > longest]:
            raise ValueError(
                f"ablation.evaluate_steps: got {', '.join(map(str, late))}, allowed are at most {longest}, "
                "the steps of the longest row"
            )
        return self
