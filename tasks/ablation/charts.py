"""The curves of a study: rows over steps, value by position at the first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.ablation.results import Run, Study
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
