"""Numbers, axes, lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tasks.reporting.curves import TRAINING, panel
from tasks.reporting.inputs import Table
from tasks.reporting.numbers import duration, figure, tick_labels, ticks
from tasks.reporting.plot import MOST_POINTS, Chart, Series, draw, thin
from tasks.train import PLOTTED


def chart(values: Sequence[float | None], **more: Any) -> Chart:
    x = [float(step) for step in range(1, len(values) + 1)]
    return Chart("k", "Title", "step", "unit", (Series("line", x, values),), **more)


def test_a_hole_breaks_the_line_and_a_lone_point_has_a_marker() -> None:
    (line,) = draw(chart([1.0, 2.0, None, 3.0, None])).lines
    assert len(line.paths) == 1
    assert [marker.text for marker in line.markers][-1] == "line, step 4: 3.00"
    (long,) = draw(chart([*map(float, range(100)), None, 5.0])).lines
    assert [marker.text for marker in long.markers] == ["line, step 102: 5.00"]


@pytest.mark.parametrize("values", [[0.0], [3.0, 3.0], [-5.0, None], [1e-9, 2e-9], [1e7, -1e7], [0.999, 1.0]])
def test_every_point_and_tick_lies_inside_the_plot(values: list[float | None]) -> None:
    drawing = draw(chart(values))
    inside = [*(t.at for t in drawing.y_ticks), *(m.y for line in drawing.lines for m in line.markers)]
    assert inside and all(drawing.top - 0.1 <= y <= drawing.bottom + 0.1 for y in inside)
    across = [*(t.at for t in drawing.x_ticks), *(m.x for line in drawing.lines for m in line.markers)]
    assert across and all(drawing.left - 0.1 <= x <= drawing.right + 0.1 for x in across)
    labels = [tick.label for tick in drawing.y_ticks]
    assert len(labels) == len(set(labels)) >= 2


def test_values_below_the_lowest_are_drawn_at_the_edge_and_the_note_says_so() -> None:
    drawing = draw(chart([-1892.0, 0.5], lowest=-1.0, zero=True))
    assert drawing.lines[0].markers[0].y == pytest.approx(drawing.bottom)
    assert drawing.lines[0].markers[0].text.endswith("\N{MINUS SIGN}1,892")
    assert drawing.note == "Values below \N{MINUS SIGN}1.00 are drawn at the lower edge."
    assert draw(chart([0.1, 0.5], lowest=-1.0)).note == ""


def test_thinning_keeps_peaks() -> None:
    points = [(float(x), 100.0 if x == 777 else -50.0 if x == 1234 else 0.0) for x in range(5000)]
    kept = thin(points)
    assert len(kept) <= MOST_POINTS
    assert (777.0, 100.0) in kept and (1234.0, -50.0) in kept
    assert kept == sorted(kept)
    assert thin(points[:MOST_POINTS]) == points[:MOST_POINTS]


def test_every_column_of_the_train_stage_is_drawn_and_no_other() -> None:
    assert {column for curve in TRAINING for column, _, _ in curve.lines} == set(PLOTTED)


def test_an_empty_table_gives_no_chart_but_names_it() -> None:
    shown = panel(TRAINING[:1], Table({"step": ["1"], "accuracy": ["nan"]}), "x", "step")
    assert (shown.drawings, shown.left_out) == ((), ("Accuracy of training responses",))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"), (True, "yes"), (12345, "12,345"), (-2, "\N{MINUS SIGN}2"), (0.0, "0"),
        (0.12345, "0.123"), (83.456, "83.5"), (12345.6, "12,346"), (2.6e-9, "2.6e\N{MINUS SIGN}9"),
        (math.nan, "nan"), ("text", "text"),
    ],
)  # fmt: skip
def test_figures(value: Any, text: str) -> None:
    assert figure(value) == text


def test_durations() -> None:
    assert [duration(s) for s in (4.25, 59.97, 200, 3600, 19000)] == [
        "4.2 s", "60.0 s", "3 min 20 s", "1 h 0 min", "5 h 16 min",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0.0, 83.0), ["0", "20", "40", "60", "80"]),
        ((-0.1, 0.1), ["\N{MINUS SIGN}0.10", "\N{MINUS SIGN}0.05", "0.00", "0.05", "0.10"]),
    ],
)
def test_ticks_are_round(ends: tuple[float, float], labels: list[str]) -> None:
    assert tick_labels(ticks(*ends)) == labels
    assert ticks(0.5, 2.5, whole=True) == [1.0, 2.0]
