"""The curves of a study: rows over steps, value by position at the first step, the value pretraining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.ablation.results import Run, Study, number
from tasks.ablation.summary import POSITION_BINS, first_by_position, seed_means
from tasks.reporting.curves import (
    BIAS_NOTE,
    EXPLAINED_VARIANCE,
    EXPLAINED_VARIANCE_NOTE,
    SHARE,
    Panel,
    add,
)
from tasks.reporting.plot import STYLES, Chart, Drawing, Series, round_ends
from tasks.train import PLOTTED
from vcppo.config import Config
from vcppo.config.ablation import AblationRow, row_config

POSITION_LINES = ("value", "return", "advantage")
SLOW_PHASE = 0.1
"""The slow phase of the pretraining begins where so much of the whole fall is left."""


@dataclass(frozen=True)
class Curve:
    """One chart over the steps; `name` in tasks.train.PLOTTED, or in the curve of the value pretraining."""

    name: str
    title: str
    unit: str
    note: str = ""
    y_range: tuple[float, float] | None = None
    zero: bool = True
    lowest: float | None = None


CURVES = (
    Curve(
        "accuracy", "Accuracy of training responses", "share",
        "Of the responses sampled for the step, before its update.", SHARE,
    ),
    Curve("response_length", "Response length", "tokens"),
    Curve("value_bias", "Value bias", "reward", BIAS_NOTE),
    Curve(
        "explained_variance", "Explained variance", EXPLAINED_VARIANCE, EXPLAINED_VARIANCE_NOTE, lowest=-1.0,
    ),
    Curve(
        "stopping_advantage", "Advantage of stopping minus that of going on", "reward",
        "At step boundaries, before whitening. Above 0 stopping early is credited.",
    ),
    Curve(
        "stopping_hazard", "Hazard of stopping", "share",
        "Of the step boundaries that responses reach, how many they stop at.",
    ),
    Curve("entropy", "Entropy", "nats per token"),
    Curve("kl_to_sft", "KL to the SFT policy", "nats per token"),
)  # fmt: skip


HELD_OUT_LOSS = Curve(
    "held_out_value_loss", "Value loss on held-out prompts", "squared reward",
    "In the paper the loss falls steeply at first, then slowly.",
)  # fmt: skip
SLOW_LOSS = Curve(
    "held_out_value_loss", "The same, slow phase", "squared reward",
    f"From where the last {SLOW_PHASE:.0%} of the fall begin; the axis does not start at 0.", zero=False,
)  # fmt: skip
PRETRAINING = (
    Curve("value_loss", "Value loss in training", "squared reward"),
    Curve(
        "explained_variance", "Explained variance on held-out prompts", EXPLAINED_VARIANCE,
        EXPLAINED_VARIANCE_NOTE, lowest=-1.0,
    ),
    Curve("value_bias", "Value bias on held-out prompts", "reward", BIAS_NOTE),
)  # fmt: skip


@dataclass(frozen=True)
class RowGroup:
    """At most `STYLES` rows in one set of charts."""

    legend: tuple[tuple[int, str], ...]
    """(style, label)."""
    panel: Panel


def table_curves(rows: Sequence[AblationRow], study: Study, key: str) -> list[RowGroup]:
    """The curves of a table's rows, with 95 % bands. key: unique on the page."""
    groups = []
    for start in range(0, len(rows), STYLES):
        own = rows[start : start + STYLES]
        runs = [study.of(row.name) for row in own]
        drawings: list[Drawing] = []
        left_out: list[str] = []
        for index, curve in enumerate(CURVES):
            chart = Chart(
                key=f"{key}-{start}-{index}",
                title=curve.title,
                x_label="training step",
                unit=curve.unit,
                series=tuple(
                    _over_steps(row.label, of_row, PLOTTED[curve.name], style)
                    for style, (row, of_row) in enumerate(zip(own, runs, strict=True), 1)
                ),
                note=curve.note,
                y_range=curve.y_range,
                zero=curve.zero,
                lowest=curve.lowest,
            )
            add(chart, drawings, left_out)
        legend = tuple((style, row.label) for style, row in enumerate(own, 1))
        groups.append(RowGroup(legend, Panel(tuple(drawings), tuple(left_out))))
    return groups


def _over_steps(label: str, runs: Sequence[Run], key: str, style: int) -> Series:
    means = seed_means(runs, key)
    return _series(label, list(means), list(means.values()), style)


def _series(label: str, x: Sequence[float], means: Sequence[Mapping[str, Any] | None], style: int) -> Series:
    values, low, high = ([mean[end] if mean else None for mean in means] for end in ("mean", "low", "high"))
    return Series(label, x, values, style, low, high)


def value_by_position(study: Study, config: Config) -> Panel:
    """Value, return and advantage by relative position at the first step, over all seeds.

    Rows that start from the same critic and have the same lam_critic differ by sampling only: the first of
    them stands for all. The charts share one y axis.
    """
    centres = [(index + 0.5) / POSITION_BINS for index in range(POSITION_BINS)]
    drawings: list[Drawing] = []
    left_out: list[str] = []
    shown = [
        (group, {name: first_by_position(study.of(group[0].name), name) for name in POSITION_LINES})
        for group in same_critic(config)
    ]
    ends = [
        mean[end]
        for _, profiles in shown
        for profile in profiles.values()
        for mean in profile
        for end in ("mean", "low", "high")
        if mean and mean[end] is not None
    ]
    for index, (group, profiles) in enumerate(shown):
        others = "; ".join(row.label for row in group[1:])
        chart = Chart(
            key=f"position-{index}",
            title=group[0].label,
            x_label="position in the response (share of its length)",
            unit="reward",
            series=tuple(
                _series(name, centres, profile, style)
                for style, (name, profile) in enumerate(profiles.items(), 1)
            ),
            note=f"The same critic and returns: {others}." if others else "",
            y_range=round_ends([*ends, 0.0]),
            x_range=SHARE,
            whole_x=False,
        )
        add(chart, drawings, left_out)
    return Panel(tuple(drawings), tuple(left_out))


def same_critic(config: Config) -> list[list[AblationRow]]:
    """Rows with a critic, those together that start from the same one and have the same lam_critic."""
    assert config.ablation is not None
    groups: dict[tuple[object, ...], list[AblationRow]] = {}
    for row in config.ablation.rows:
        train = row_config(config, row, 0).train
        if train.algorithm != "grpo":
            key = (train.critic_start, row.pretraining_share, train.gae.lam_critic, train.gae.gamma)
            groups.setdefault(key, []).append(row)
    return list(groups.values())


def pretraining(critics: Sequence[Mapping[str, Any]]) -> Panel:
    """The value pretraining, a line for each length of it; the loss a second time from its slow phase on."""
    drawings: list[Drawing] = []
    left_out: list[str] = []
    slow = [{**critic, "curve": slow_phase(critic["curve"])} for critic in critics]
    for key, curve, of in (
        ("loss", HELD_OUT_LOSS, critics),
        ("slow", SLOW_LOSS, slow),
        *((curve.name, curve, critics) for curve in PRETRAINING),
    ):
        series = tuple(
            Series(
                share_label(critic),
                [number(line, "step") for line in critic["curve"]],
                [number(line, curve.name) for line in critic["curve"]],
                style,
            )
            for style, critic in _styled(of)
        )
        chart = Chart(
            key=f"pretraining-{key}",
            title=curve.title,
            x_label="update",
            unit=curve.unit,
            series=series,
            note=curve.note,
            zero=curve.zero,
            lowest=curve.lowest,
        )
        add(chart, drawings, left_out)
    add(_pretrained_by_position(critics), drawings, left_out)
    return Panel(tuple(drawings), tuple(left_out))


def _pretrained_by_position(critics: Sequence[Mapping[str, Any]]) -> Chart:
    def line(label: str, critic: Mapping[str, Any], name: str, style: int) -> Series:
        profile = critic["by_position"]
        x = [number(bin_, "position") for bin_ in profile]
        return Series(label, x, [number(bin_, name) for bin_ in profile], style)

    # the held-out rollouts are the same for all, so their returns are too
    series = [line(share_label(critic), critic, "value", style) for style, critic in _styled(critics)]
    returns = [line("return", critics[-1], "return", STYLES)] if critics else []
    return Chart(
        "pretraining-position",
        "Value by position after the pretraining, against the return",
        "position in the response (share of its length)",
        "reward",
        (*series, *returns),
        zero=True,
        x_range=SHARE,
        whole_x=False,
    )


def slow_phase(curve: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The curve from the first evaluation on at which all but `SLOW_PHASE` of the fall of the held-out loss
    is done."""
    losses = [number(line, "held_out_value_loss") for line in curve]
    known = [loss for loss in losses if loss is not None]
    if not known:
        return []
    limit = min(known) + SLOW_PHASE * (known[0] - min(known))
    start = next(index for index, loss in enumerate(losses) if loss is not None and loss <= limit)
    return curve[start:]


def share_label(critic: Mapping[str, Any]) -> str:
    """`1 x (360 updates)`."""
    share = critic["pretraining_share"]
    return f"{share:g} \N{MULTIPLICATION SIGN} ({critic['num_steps']} updates)"


def _styled(critics: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The last style is the return's; more lengths than styles begin anew."""
    for index, critic in enumerate(critics):
        yield index % (STYLES - 1) + 1, critic
