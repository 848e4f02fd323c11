"""One section per pipeline stage, and the whole: `Config`. The papers' values are in profiles/."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from vcppo.config.base import (
    NonNegativeInt,
    OptimizerConfig,
    PositiveFloat,
    PositiveInt,
    SamplingConfig,
    Section,
    UnitInterval,
)
from vcppo.config.evaluate import EvaluateConfig
from vcppo.config.model import ModelConfig
from vcppo.config.sources import Source


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

    min_explained_variance: float = Field(default=-0.05, le=1.0)
    max_abs_value_bias: PositiveFloat = 0.25
    """Largest |mean(V - R)|, in units of the reward."""


class PretrainCriticConfig(Section):
    """Value pretraining on Monte-Carlo returns of the frozen policy (VC-PPO section 3.1, lambda = 1)."""

    start_from: Literal["sft", "reward_model"] = "sft"
    """Trunk of the critic: the SFT policy, or the reward model as in the paper."""
    optimizer: OptimizerConfig
    batch_size: PositiveInt = 64
    """Responses per update."""
    max_epochs: PositiveInt = 4
    patience: PositiveInt = 3
    """Stop after this many held-out evaluations without a better value loss."""
    evaluations_per_epoch: PositiveInt = 4
    held_out_fraction: UnitInterval = 0.1
    """Share of the prompts (not responses) kept for measuring."""
    gate: CriticGate = CriticGate()


class GaeConfig(Section):
    """Generalised advantage estimation with one lambda for each side (VC-PPO section 3.2)."""

    gamma: UnitInterval = 1.0
    lam_actor: UnitInterval | Literal["length_adaptive"] = 0.95
    """Policy advantages; `length_adaptive` is VAPO's 1 - 1/(alpha l)."""
    lam_critic: UnitInterval = 1.0
    """Value targets; 1 gives Monte-Carlo returns."""
    length_adaptive_alpha: PositiveFloat = 0.05
    whiten: bool = True


class RewardConfig(Section):
    """Score of a graded response, given at its last token."""

    right: float = 1.0
    wrong: float = -1.0


class ActorConfig(Section):
    optimizer: OptimizerConfig
    mini_batch_size: PositiveInt
    """Responses per policy update."""
    epochs: PositiveInt = 1
    clip_ratio_low: UnitInterval = 0.2
    clip_ratio_high: PositiveFloat = 0.2
    loss_aggregation: Literal["token", "sequence"] = "token"
    entropy_coefficient: float = Field(default=0.0, ge=0.0)
    kl_coefficient: float = Field(default=0.0, ge=0.0)
    """Weight of the KL to the SFT policy in the loss; 0 loads no reference model."""
    language_model_loss_coefficient: float = Field(default=0.0, ge=0.0)
    """VAPO: weight of the imitation loss on correct samples."""


class CriticConfig(Section):
    optimizer: OptimizerConfig
    mini_batch_size: PositiveInt
    epochs: PositiveInt = 1
    """Passes over each batch: K critic updates per actor update."""
    value_clip: PositiveFloat | None = None
    """None: the plain 0.5 (V - R)^2 of VC-PPO's algorithm 1."""
    warmup_steps: NonNegativeInt = 0
    """Steps in which only the critic is updated."""


class TrainConfig(Section):
    """VC-PPO training on verl."""

    algorithm: Literal["vc_ppo", "ppo", "vapo", "grpo"] = "vc_ppo"
    critic_start: Literal["value_pretrained", "sft", "reward_model"] = "value_pretrained"
    num_steps: PositiveInt
    prompts_per_step: PositiveInt
    samples_per_prompt: PositiveInt = 1
    sampling: SamplingConfig = SamplingConfig()
    gae: GaeConfig = GaeConfig()
    reward: RewardConfig = RewardConfig()
    actor: ActorConfig
    critic: CriticConfig
    save_every_steps: PositiveInt = 5
    keep_checkpoints: PositiveInt = 2
    verl: dict[str, Any] = Field(default_factory=dict)
    """Further verl keys (dotted, as on verl's command line); keys that we own are refused."""

    @model_validator(mode="after")
    def _consistent(self) -> TrainConfig:
        if self.algorithm == "ppo" and self.gae.lam_actor != self.gae.lam_critic:
            raise ValueError(
                f"algorithm 'ppo' has one lambda, got gae.lam_actor={self.gae.lam_actor} and "
                f"gae.lam_critic={self.gae.lam_critic}: make them equal, or use 'vc_ppo'"
            )
        if self.reward.right <= self.reward.wrong:
            raise ValueError(
                f"reward.right ({self.reward.right}) must exceed reward.wrong ({self.reward.wrong})"
            )
        batch = self.prompts_per_step * self.samples_per_prompt
        for side, mini in (("actor", self.actor.mini_batch_size), ("critic", self.critic.mini_batch_size)):
            if batch % mini:
                raise ValueError(
                    f"{side}.mini_batch_size ({mini}) must divide "
                    f"prompts_per_step x samples_per_prompt ({batch})"
                )
        return self


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
