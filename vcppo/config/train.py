"""The section of stage train: which algorithm, with which actor, critic and guards.

The algorithm's name is a promise that the settings are checked against (`_algorithm_keeps_its_name`):

- `ppo`     one lambda for both sides
- `vc_ppo`  lambdas of their own (arXiv 2503.01491); any single ingredient of VAPO may be added
- `vapo`    all ingredients of arXiv 2504.05118 at once
- `grpo`    no critic, the mean of a prompt's samples is the baseline (verl's own)
"""

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


class LambdaFallbackConfig(Section):
    """lam_actor moves towards 1 while the critic explains nothing.

    With lam_actor < 1 the critic's errors enter the advantages (VC-PPO section 3.1). Once explained variance
    is gone, as late in a saturated run, lam_actor 0.95 can undo what was learnt; at 1 the critic is a mere
    baseline and cannot bias the gradient.
    """

    min_explained_variance: float = Field(default=0.0, le=1.0)
    steps: PositiveInt = 3
    """From the so-manieth step in a row below it on, each one halves 1 - lam_actor, and the fifth makes
    lam_actor 1; each step at or above it takes one halving back."""


class GaeConfig(Section):
    """Generalised advantage estimation with one lambda for each side (VC-PPO section 3.2)."""

    gamma: UnitInterval = 1.0
    lam_actor: UnitInterval | Literal["length_adaptive"] = 0.95
    """Policy advantages; `length_adaptive` is VAPO's 1 - 1/(alpha l)."""
    lam_critic: UnitInterval = 1.0
    """Value targets; 1 gives Monte-Carlo returns."""
    length_adaptive_alpha: PositiveFloat = 0.05
    whiten: bool = True
    fallback: LambdaFallbackConfig | None = None
    """None: lam_actor stays what it is."""


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
    """Weight of the KL to the SFT policy in the loss; above 0 a reference model is loaded."""
    measure_kl_to_sft: bool = False
    """Load the reference model to measure that KL even where its weight is 0."""
    language_model_loss_coefficient: float = Field(default=0.0, ge=0.0)
    """VAPO: weight of the imitation loss on correct samples, a mean over their tokens."""


class CriticConfig(Section):
    optimizer: OptimizerConfig
    mini_batch_size: PositiveInt
    epochs: PositiveInt = 1
    """Passes over each batch: K critic updates per actor update."""
    value_clip: PositiveFloat | None = None
    """None: the plain 0.5 (V - R)^2 of VC-PPO's algorithm 1."""
    warmup_steps: NonNegativeInt = 0
    """Steps in which only the critic is updated."""


class GuardsConfig(Section):
    """When a run is stopped before it saves what it has become. A limit of None turns its guard off.

    A step that gives no evidence (a metric that is missing or nan: no actor update yet, constant returns)
    neither counts nor breaks a row of steps. Non-finite losses, gradient norms and values always stop.
    """

    action: Literal["stop", "warn"] = "stop"
    """warn: say so, mark the step in the metrics and go on; for experiments that want to see the collapse."""
    steps: PositiveInt = 5
    """Steps in a row outside a limit until its guard acts, where it has no number of its own."""
    min_explained_variance: float | None = Field(default=-1.0, le=1.0)
    """A step counts only if both outcomes make up 5 % of its responses: with nearly all right there is next
    to no variance to explain, and the figure falls far below 0 in the best of runs."""
    max_value_bias: PositiveFloat | None = 0.75
    """Largest |mean(V - R)|, as a share of reward.right - reward.wrong."""
    min_length_share: Annotated[float, Field(gt=0.0, lt=1.0)] | None = 0.5
    """Collapse: mean length below this share of what the first step's lengths of right and wrong responses
    give for the accuracy of now, while accuracy is not above the first step's, or below three quarters of the
    best so far. So neither a changed mix of long and short responses nor learning to be brief counts."""
    length_steps: PositiveInt = 3
    max_kl: PositiveFloat | None = 0.5
    """Nats a token between the policy that sampled and the one updated within a step (|actor/ppo_kl|)."""
    max_kl_to_sft: PositiveFloat | None = 2.0
    """Nats a token; only where the reference model is loaded."""
    max_entropy_rise: PositiveFloat | None = 1.5
    """Nats a token above the first step. Falling entropy is what learning looks like: only logged."""
    runaway_steps: PositiveInt = 3
    """Of the guards on KL and entropy."""
    constant_reward_steps: PositiveInt | None = 10
    """Dead grader: so many steps in a row in which every response has the same score. All right after scores
    once differed is a solved task and does not count; all right from the start does, all wrong always."""


class StoppingConfig(Section):
    """Where responses are written in steps of equal length, as in synthetic tasks: measure early stopping.

    At each boundary before the last step the response either goes on or begins its answer. The sign of the
    advantage of stopping minus that of going on tells the biased critic from the calibrated one (VC-PPO
    section 3.1: early tokens are credited whatever the answer).
    """

    step_tokens: PositiveInt
    num_steps: PositiveInt
    answer_token: str = Field(min_length=1)
    """First token of an answer, as text."""


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
    guards: GuardsConfig = GuardsConfig()
    stopping: StoppingConfig | None = None
    """None: responses have no steps that could be told by counting tokens."""
    save_every_steps: PositiveInt = 5
    keep_checkpoints: PositiveInt = 2
    verl: dict[str, Any] = Field(default_factory=dict)
    """Further verl keys (dotted, as on verl's command line); keys that we own are refused."""

    @model_validator(mode="after")
    def _algorithm_keeps_its_name(self) -> TrainConfig:
        checks = {"ppo": self._not_ppo, "vapo": self._not_vapo, "grpo": self._not_grpo}
        complaints = checks[self.algorithm]() if self.algorithm in checks else ""
        if complaints:
            raise ValueError(f"algorithm {self.algorithm!r} {complaints}")
        return self

    def _not_ppo(self) -> str:
        gae = self.gae
        if gae.lam_actor == gae.lam_critic:
            return ""
        lambdas = f"gae.lam_actor={gae.lam_actor} and gae.lam_critic={gae.lam_critic}"
        return f"has one lambda, got {lambdas}: make them equal, or use 'vc_ppo'"

    def _not_vapo(self) -> str:
        actor, low, high = self.actor, self.actor.clip_ratio_low, self.actor.clip_ratio_high
        wanted = []
        if self.gae.lam_actor != "length_adaptive":
            wanted.append(f"gae.lam_actor is {self.gae.lam_actor}, allowed is 'length_adaptive'")
        if high <= low:
            wanted.append(f"actor.clip_ratio_high is {high}, allowed is above clip_ratio_low ({low})")
        if actor.loss_aggregation != "token":
            wanted.append(f"actor.loss_aggregation is {actor.loss_aggregation!r}, allowed is 'token'")
        if actor.language_model_loss_coefficient == 0:
            wanted.append("actor.language_model_loss_coefficient is 0.0, allowed is above 0")
        if self.samples_per_prompt < 2:
            wanted.append("samples_per_prompt is 1, allowed is 2 or more")
        if self.critic_start != "value_pretrained" and self.critic.warmup_steps == 0:
            wanted.append(
                f"critic.warmup_steps is 0 with critic_start {self.critic_start!r}, allowed is above 0, or "
                "critic_start 'value_pretrained'"
            )
        if not wanted:
            return ""
        return f"is VAPO with all its ingredients, but {'; '.join(wanted)}. To leave one out, use 'vc_ppo'"

    def _not_grpo(self) -> str:
        wanted = []
        if self.samples_per_prompt < 2:
            wanted.append("samples_per_prompt is 1, allowed is 2 or more")
        if self.gae.fallback is not None:
            wanted.append("gae.fallback is set, allowed is null")
        if not wanted:
            return ""
        return f"compares the samples of a prompt and has no critic, but {'; '.join(wanted)}"

    @model_validator(mode="after")
    def _consistent(self) -> TrainConfig:
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
