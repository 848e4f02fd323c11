"""What each guard looks at in one step's metrics: is the step outside its limit?

A rule sees the raw numbers, before non-finite ones become null in metrics.jsonl. Its verdict on a step is
bad, good, or no evidence (None): a metric that is missing or nan says nothing, because explained variance is
nan wherever all returns are equal, and a critic warm-up has no actor metrics. `Start` is what a run is
compared with. To add one: a function here, a line in `rules`, limits in GuardsConfig, an error in
vcppo/errors.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vcppo import errors
from vcppo.config.train import GuardsConfig, RewardConfig

KEPT_ACCURACY = 0.75
"""Share of a run's best accuracy below which getting short counts as a collapse."""
MIN_MINORITY = 0.05
"""Share of the rarer outcome from which explained variance has something to explain."""

FINITE = (
    "actor/pg_loss",
    "actor/loss",
    "actor/grad_norm",
    "actor/entropy_loss",
    "actor/ppo_kl",
    "critic/vf_loss",
    "critic/loss",
    "critic/grad_norm",
    "critic/vpred_mean",
    "critic/value_mean",
    "critic/return_mean",
)
"""Losses, gradient norms and values: never nan or infinite in a healthy step."""


@dataclass
class Start:
    """The run's first figures, its best accuracy, and whether scores have ever differed. Filled as steps are
    seen."""

    accuracy: float | None = None
    best_accuracy: float = 0.0
    length: float | None = None
    length_right: float | None = None
    length_wrong: float | None = None
    entropy: float | None = None
    scores_differed: bool = False

    def see(self, metrics: Mapping[str, Any]) -> None:
        if self.length is None:
            self.accuracy = number(metrics, "response/accuracy")
            self.length = number(metrics, "response/length")
            self.length_right = number(metrics, "response/length_right")
            self.length_wrong = number(metrics, "response/length_wrong")
        self.best_accuracy = max(self.best_accuracy, number(metrics, "response/accuracy") or 0.0)
        if self.entropy is None:
            self.entropy = number(metrics, "actor/entropy_loss")
        low, high = number(metrics, "critic/score/min"), number(metrics, "critic/score/max")
        self.scores_differed = self.scores_differed or (low is not None and high is not None and low != high)


@dataclass(frozen=True)
class Verdict:
    bad: bool | None
    """None: the step says nothing."""
    evidence: Mapping[str, float | None]


@dataclass(frozen=True)
class Rule:
    """One guard: it acts after `steps` bad steps in a row."""

    name: str
    error: type[errors.DivergenceError]
    steps: int
    limit: str
    """What is allowed, in words and numbers."""
    judge: Callable[[Mapping[str, Any], Start], Verdict]
    advice: str
    always_stops: bool = False


def rules(guards: GuardsConfig, reward: RewardConfig) -> list[Rule]:
    """The guards that a configuration turns on."""
    spread = reward.right - reward.wrong
    found = [
        Rule(
            "non_finite",
            errors.NonFiniteError,
            1,
            "finite losses, gradient norms and values",
            _not_finite,
            "lower the learning rates (train.actor.optimizer, train.critic.optimizer)",
            always_stops=True,
        )
    ]
    if (least := guards.min_explained_variance) is not None:
        found.append(
            Rule(
                "explained_variance",
                errors.ExplainedVarianceError,
                guards.steps,
                f"critic/explained_variance of at least {least:g} (train.guards.min_explained_variance)",
                lambda metrics, start: _explained_variance(metrics, least),
                "pretrain the critic longer, or lower its learning rate (train.critic.optimizer)",
            )
        )
    if guards.max_value_bias is not None:
        bound = guards.max_value_bias * spread
        found.append(
            Rule(
                "value_bias",
                errors.ValueBiasError,
                guards.steps,
                f"|critic/value_bias| of at most {bound:g} (train.guards.max_value_bias x reward range)",
                lambda metrics, start: _above(metrics, "critic/value_bias", bound),
                "start from a value-pretrained critic (train.critic_start)",
            )
        )
    if (share := guards.min_length_share) is not None:
        found.append(
            Rule(
                "length_collapse",
                errors.LengthCollapseError,
                guards.length_steps,
                f"mean length of at least {share:g} of the start's at this accuracy "
                "(train.guards.min_length_share), or accuracy above the start's and at least "
                f"{KEPT_ACCURACY:g} of the best so far",
                lambda metrics, start: _length_collapse(metrics, start, share),
                "look at critic/value_bias and the values by position: a critic that starts too low rewards "
                "stopping (train.critic_start: value_pretrained)",
            )
        )
    found += _runaway_rules(guards)
    if guards.constant_reward_steps is not None:
        found.append(
            Rule(
                "dead_grader",
                errors.DeadGraderError,
                guards.constant_reward_steps,
                "scores that differ within a step (train.guards.constant_reward_steps)",
                lambda metrics, start: _constant_reward(metrics, start, reward.right),
                "check the grader and the gold answers (`python -m vcppo grade`), or take easier problems",
            )
        )
    return found


def _runaway_rules(guards: GuardsConfig) -> list[Rule]:
    found = []
    advice = "lower train.actor.optimizer.learning_rate, or add train.actor.kl_coefficient"
    if (kl := guards.max_kl) is not None:
        found.append(
            Rule(
                "kl",
                errors.KlRunawayError,
                guards.runaway_steps,
                f"|actor/ppo_kl| of at most {kl:g} (train.guards.max_kl)",
                lambda metrics, start: _above(metrics, "actor/ppo_kl", kl),
                advice,
            )
        )
    if (distance := guards.max_kl_to_sft) is not None:
        found.append(
            Rule(
                "kl_to_sft",
                errors.KlRunawayError,
                guards.runaway_steps,
                f"actor/kl_to_sft of at most {distance:g} (train.guards.max_kl_to_sft)",
                lambda metrics, start: _above(metrics, "actor/kl_to_sft", distance),
                advice,
            )
        )
    if (rise := guards.max_entropy_rise) is not None:
        found.append(
            Rule(
                "entropy",
                errors.EntropyRunawayError,
                guards.runaway_steps,
                f"actor/entropy_loss of at most {rise:g} above the first (train.guards.max_entropy_rise)",
                lambda metrics, start: _entropy_rise(metrics, start, rise),
                "lower train.actor.entropy_coefficient or train.actor.optimizer.learning_rate",
            )
        )
    return found


def number(metrics: Mapping[str, Any], key: str) -> float | None:
    """A metric as a finite float; None where it is missing, null or not finite."""
    value = metrics.get(key)
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def _not_finite(metrics: Mapping[str, Any], start: Start) -> Verdict:
    wrong = {
        key: float(metrics[key])
        for key in FINITE
        if metrics.get(key) is not None and not math.isfinite(metrics[key])
    }
    return Verdict(bool(wrong), wrong)


def _explained_variance(metrics: Mapping[str, Any], least: float) -> Verdict:
    variance, accuracy = number(metrics, "critic/explained_variance"), number(metrics, "response/accuracy")
    evidence = {"critic/explained_variance": variance, "response/accuracy": accuracy}
    if variance is None or accuracy is None or not MIN_MINORITY <= accuracy <= 1 - MIN_MINORITY:
        return Verdict(None, evidence)
    return Verdict(variance < least, evidence)


def _above(metrics: Mapping[str, Any], key: str, bound: float) -> Verdict:
    value = number(metrics, key)
    return Verdict(None if value is None else abs(value) > bound, {key: value})


def _length_collapse(metrics: Mapping[str, Any], start: Start, share: float) -> Verdict:
    length, accuracy = number(metrics, "response/length"), number(metrics, "response/accuracy")
    if length is None or accuracy is None or start.length is None or start.accuracy is None:
        return Verdict(None, {"response/length": length})
    right = start.length if start.length_right is None else start.length_right
    wrong = start.length if start.length_wrong is None else start.length_wrong
    expected = accuracy * right + (1 - accuracy) * wrong
    evidence = {
        "response/length": length,
        "response/length_right": number(metrics, "response/length_right"),
        "response/length_wrong": number(metrics, "response/length_wrong"),
        "response/accuracy": accuracy,
        "start length at this accuracy": expected,
        "start accuracy": start.accuracy,
        "best accuracy": start.best_accuracy,
    }
    # shorter and better is no collapse; shorter and worse than the run has been is one, however late
    worse = accuracy <= start.accuracy or accuracy < KEPT_ACCURACY * start.best_accuracy
    return Verdict(length < share * expected and worse, evidence)


def _entropy_rise(metrics: Mapping[str, Any], start: Start, rise: float) -> Verdict:
    entropy = number(metrics, "actor/entropy_loss")
    evidence = {"actor/entropy_loss": entropy, "start entropy": start.entropy}
    if entropy is None or start.entropy is None:
        return Verdict(None, evidence)
    return Verdict(entropy - start.entropy > rise, evidence)


def _constant_reward(metrics: Mapping[str, Any], start: Start, right: float) -> Verdict:
    low, high = number(metrics, "critic/score/min"), number(metrics, "critic/score/max")
    evidence = {"critic/score/min": low, "critic/score/max": high}
    if low is None or high is None:
        return Verdict(None, evidence)
    solved = start.scores_differed and low == right
    return Verdict(low == high and not solved, evidence)
