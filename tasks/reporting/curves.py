"""Which curves the page shows, and of which columns they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.reporting.inputs import Results, Table
from tasks.reporting.numbers import figure
from tasks.reporting.plot import Chart, Drawing, Series, draw, round_ends

Numbers = Callable[[str], Sequence[float | None]]
"""Name of a quantity to its values."""
QUANTITIES = ("value", "return", "advantage")
"""By position; advantages before whitening."""
SHARE = (0.0, 1.0)
EXPLAINED_VARIANCE = "1 \N{MINUS SIGN} Var(return \N{MINUS SIGN} value) / Var(return)"
EXPLAINED_VARIANCE_NOTE = "1 is perfect; at 0 and below the critic is no better than a constant."
BIAS_NOTE = "Mean of value minus return. Below 0 the critic is too low."


@dataclass(frozen=True)
class Curve:
    """One chart over the rows of a CSV file: (column, label, style) of each line."""

    title: str
    unit: str
    lines: tuple[tuple[str, str, int], ...]
    note: str = ""
    y_range: tuple[float, float] | None = None
    zero: bool = False
    lowest: float | None = None


@dataclass(frozen=True)
class Panel:
    """Charts that belong together, and the titles of those that the run has no numbers for."""

    drawings: tuple[Drawing, ...]
    left_out: tuple[str, ...]


TRAINING = (
    Curve(
        "Accuracy of training responses", "share", (("accuracy", "accuracy", 1),),
        "Of the responses sampled for the step, before its update.", SHARE,
    ),
    Curve(
        "Answered and cut off", "share",
        (("answer_rate", "answered", 1), ("truncation_rate", "cut at the token limit", 2)), y_range=SHARE,
    ),
    Curve(
        "Response length", "tokens",
        (("response_length", "all", 1), ("length_right", "right", 3), ("length_wrong", "wrong", 2)),
        "Mean per response. Plain PPO's collapse shows here first: lengths fall within tens of steps.",
        zero=True,
    ),
    Curve("Mean reward", "reward", (("score", "reward", 1),)),
    Curve("Value bias", "reward", (("value_bias", "value bias", 1),), BIAS_NOTE, zero=True),
    Curve(
        "Explained variance", EXPLAINED_VARIANCE,
        (("explained_variance", "explained variance", 1),), EXPLAINED_VARIANCE_NOTE, zero=True, lowest=-1.0,
    ),
    Curve("Value loss", "squared reward", (("value_loss", "value loss", 1),), zero=True),
    Curve(
        "Value of right and wrong responses", "reward",
        (("value_right", "right", 3), ("value_wrong", "wrong", 2)),
        "Mean over their tokens. A critic that sees how a response goes tells them apart.", zero=True,
    ),
    Curve(
        "Lambda of the policy", "lam_actor", (("lam_actor", "lam_actor", 1),),
        "Mean over the responses; changes where it adapts to their length, or falls back.",
    ),
    Curve(
        "Approximate KL", "nats per token", (("approximate_kl", "KL", 1),),
        "Between the policy that sampled and the one being updated.",
    ),
    Curve("KL to the SFT policy", "nats per token", (("kl_to_sft", "KL", 1),), zero=True),
    Curve("Entropy", "nats per token", (("entropy", "entropy", 1),), zero=True),
    Curve(
        "Clip fraction", "share of tokens",
        (
            ("clip_fraction", "ratio", 1), ("clip_fraction_lower", "ratio, dual clip", 2),
            ("value_clip_fraction", "value", 3),
        ),
        zero=True,
    ),
    Curve(
        "Policy loss", "loss",
        (("policy_loss", "clipped surrogate", 1), ("language_model_loss", "language model, right ones", 2)),
        zero=True,
    ),
    Curve("Hazard of stopping", "share of step boundaries", (("stopping_hazard", "hazard", 1),), zero=True),
    Curve(
        "Advantage of stopping", "reward", (("stopping_advantage", "stopping minus going on", 1),),
        "Above 0 the policy learns to stop, whatever the answer.", zero=True,
    ),
    Curve("Tokens per second", "tokens a device", (("tokens_per_second", "tokens", 1),), zero=True),
    Curve(
        "Seconds by phase", "seconds",
        (
            ("seconds", "whole step", 1), ("seconds_rollouts", "rollouts and grading", 2),
            ("seconds_values", "values", 3), ("seconds_advantages", "advantages", 4),
            ("seconds_update_critic", "critic", 5), ("seconds_update_actor", "policy", 6),
        ),
        zero=True,
    ),
)  # fmt: skip

PRETRAINING = (
    Curve(
        "Value loss", "squared reward",
        (("value_loss", "training", 2), ("held_out_value_loss", "held-out prompts", 1)),
        "In the paper it falls steeply at first, then slowly; pretraining ends once it is level.",
        zero=True,
    ),
    Curve(
        "Explained variance on held-out prompts", EXPLAINED_VARIANCE,
        (("explained_variance", "explained variance", 1),), EXPLAINED_VARIANCE_NOTE, zero=True, lowest=-1.0,
    ),
    Curve(
        "Value bias on held-out prompts", "reward", (("value_bias", "value bias", 1),), BIAS_NOTE, zero=True,
    ),
)  # fmt: skip

SFT = (Curve("SFT loss", "nats per token", (("loss", "loss", 1),), zero=True),)


def panel(curves: Sequence[Curve], table: Table | None, prefix: str, x_label: str) -> Panel:
    """The curves over column `step` of a table; those without a single number are only named."""
    table = table or Table({})
    steps = table.numbers("step")
    drawings: list[Drawing] = []
    left_out: list[str] = []
    for index, curve in enumerate(curves):
        series = tuple(
            Series(label, steps, table.numbers(column), style)
            for column, label, style in curve.lines
            if column in table.columns
        )
        chart = Chart(
            key=f"{prefix}-{index}",
            title=curve.title,
            x_label=x_label,
            unit=curve.unit,
            series=series,
            note=curve.note,
            y_range=curve.y_range,
            zero=curve.zero,
            lowest=curve.lowest,
        )
        add(chart, drawings, left_out)
    return Panel(tuple(drawings), tuple(left_out))


def value_by_position(results: Results) -> Panel:
    """Value, return and advantage by relative position: after value pretraining (which has no advantages), at
    the first and at the last step.

    The charts share one y axis, so that they can be compared.
    """
    pretrained = results.plots.get("value_by_position", Table({}))
    whats: list[tuple[str, Sequence[float | None], Numbers]] = [
        ("after value pretraining", pretrained.numbers("position"), pretrained.numbers)
    ]
    if results.steps:
        first, last = results.steps[0], results.steps[-1]
        whats.append((f"at training step {figure(first.get('step'))}", *_bins(first)))
        if last is not first:
            whats.append((f"at training step {figure(last.get('step'))}", *_bins(last)))
    whole = [n for _, _, numbers in whats for name in QUANTITIES for n in numbers(name) if n is not None]
    y_range = round_ends([*whole, 0.0])
    drawings: list[Drawing] = []
    left_out: list[str] = []
    for index, (when, positions, numbers) in enumerate(whats):
        chart = Chart(
            key=f"position-{index}",
            title=f"Value by position {when}",
            x_label="position in the response (share of its length)",
            unit="reward",
            series=tuple(
                Series(name, positions, numbers(name), style)
                for style, name in enumerate(QUANTITIES, start=1)
                if any(number is not None for number in numbers(name))
            ),
            y_range=y_range,
            x_range=SHARE,
            whole_x=False,
        )
        add(chart, drawings, left_out)
    return Panel(tuple(drawings), tuple(left_out))


def _bins(step: Mapping[str, Any]) -> tuple[list[float | None], Numbers]:
    """Bin centres of the relative position, and the means of a quantity in them (`position/NAME_BIN`)."""
    # bins without a token are left out of the metrics
    present = [
        int(key.rpartition("_")[2]) for key in step if key.startswith(("position/value_", "position/return_"))
    ]
    count = max(present, default=-1) + 1
    centres: list[float | None] = [(index + 0.5) / count for index in range(count)]
    return centres, lambda name: [step.get(f"position/{name}_{index}") for index in range(count)]


def add(chart: Chart, drawings: list[Drawing], left_out: list[str]) -> None:
    """Draw the chart, or name it among those left out when it has no point."""
    if any(series.points() for series in chart.series):
        drawings.append(draw(chart))
    else:
        left_out.append(chart.title)
