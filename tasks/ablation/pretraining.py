"""The value pretraining of a study in curves: the steep phase, the slow one, what the critic then says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.ablation.charts import Curve
from tasks.ablation.results import number
from tasks.reporting.curves import BIAS_NOTE, EXPLAINED_VARIANCE, EXPLAINED_VARIANCE_NOTE, SHARE, Panel, add
from tasks.reporting.plot import STYLES, Chart, Drawing, Series

SLOW_PHASE = 0.1
"""The slow phase of the pretraining begins where so much of the whole fall is left."""
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
