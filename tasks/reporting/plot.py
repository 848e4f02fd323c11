"""Line and interval charts as coordinates; `templates/charts.html.j2` writes the SVG.

Coordinates are in the drawing's own units (`WIDTH` x `HEIGHT`), y downwards, as SVG has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tasks.reporting.numbers import MOST_TICKS, figure, round_step, tick_labels, ticks

WIDTH, HEIGHT = 440, 250
TOP, RIGHT, BOTTOM = 26, 14, 42
CHARACTER = 7.2
"""Width of a digit at the charts' font size, generously."""
MARKED = 40
"""Up to so many points each has a marker that tells its value."""
MOST_POINTS = 400
STYLES = 6

Point = tuple[float, float]
Place = Callable[[Point], Point]
"""From values to coordinates."""


@dataclass(frozen=True)
class Series:
    """One line. `values` may have holes; `style` 1 to `STYLES` is colour, dash and marker."""

    label: str
    x: Sequence[float | None]
    values: Sequence[float | None]
    style: int = 1
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    """Ends of the values' intervals, drawn as a band where both are there; empty: no band."""

    def points(self) -> list[Point]:
        """(x, y) where both are there."""
        return [(x, y) for x, y in zip(self.x, self.values, strict=True) if x is not None and y is not None]

    def band(self) -> list[tuple[float, float, float] | None]:
        """(x, low, high), None where one of them is missing."""
        if not self.low:
            return []
        return [
            None if x is None or low is None or high is None else (x, low, high)
            for x, low, high in zip(self.x, self.low, self.high, strict=True)
        ]


@dataclass(frozen=True)
class Chart:
    """What a line chart shows."""

    key: str
    """Unique on the page: becomes the element's id."""
    title: str
    x_label: str
    unit: str
    """Of the y axis."""
    series: tuple[Series, ...]
    note: str = ""
    y_range: tuple[float, float] | None = None
    """Fixed ends of the y axis; None takes them from the values."""
    x_range: tuple[float, float] | None = None
    whole_x: bool = True
    """x counts something."""
    zero: bool = False
    """The y axis includes 0."""
    lowest: float | None = None
    """Values below are drawn at this edge, so that one outlier does not flatten the rest."""


@dataclass(frozen=True)
class Tick:
    at: float
    label: str
    is_zero: bool = False


@dataclass(frozen=True)
class Marker:
    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Line:
    label: str
    style: int
    paths: tuple[str, ...]
    """`points` of an SVG polyline, one per stretch without a hole."""
    markers: tuple[Marker, ...]
    bands: tuple[str, ...] = ()
    """`points` of an SVG polygon, one per stretch of the interval."""


@dataclass(frozen=True)
class Drawing:
    """A chart ready to be written."""

    chart: Chart
    left: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    description: str
    note: str
    width: int = WIDTH
    height: int = HEIGHT
    top: int = TOP
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def draw(chart: Chart) -> Drawing:
    """Lay a chart out. At least one of its series has a point."""
    series = tuple(line for line in chart.series if line.points())
    points = [point for line in series for point in line.points()]
    ends = [y for line in series for span in line.band() if span for y in span[1:]]
    ys = [max(y, chart.lowest) if chart.lowest is not None else y for y in [*(y for _, y in points), *ends]]
    y_low, y_high = chart.y_range or round_ends([*ys, 0.0] if chart.zero else ys)
    x_low, x_high = chart.x_range or _spread(min(x for x, _ in points), max(x for x, _ in points), 0.5)
    y_values, x_values = ticks(y_low, y_high), ticks(x_low, x_high, 6, whole=chart.whole_x)
    labels = tick_labels(y_values)
    left = 14 + CHARACTER * max(len(label) for label in labels)

    def place(point: Point) -> Point:
        x, y = point
        y = min(max(y, y_low), y_high)
        return (
            left + (x - x_low) / (x_high - x_low) * (WIDTH - RIGHT - left),
            HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - BOTTOM - TOP),
        )

    cut = chart.lowest is not None and any(y < chart.lowest for _, y in points)
    edge = f"Values below {figure(chart.lowest)} are drawn at the lower edge." if cut else ""
    return Drawing(
        chart=chart,
        left=left,
        x_ticks=tuple(
            Tick(place((x, y_low))[0], label)
            for x, label in zip(x_values, tick_labels(x_values), strict=True)
        ),
        y_ticks=tuple(
            Tick(place((x_low, y))[1], label, y == 0) for y, label in zip(y_values, labels, strict=True)
        ),
        lines=tuple(_line(line, place, chart) for line in series),
        description="; ".join(_description(line, chart) for line in series),
        note=" ".join(part for part in (chart.note, edge) if part),
    )


def _line(series: Series, place: Place, chart: Chart) -> Line:
    stretches = [thin(stretch) for stretch in _stretches(series)]
    total = sum(len(stretch) for stretch in stretches)
    marked = (
        [p for s in stretches for p in s] if total <= MARKED else [s[0] for s in stretches if len(s) == 1]
    )
    return Line(
        label=series.label,
        style=series.style,
        paths=tuple(
            " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, stretch))
            for stretch in stretches
            if len(stretch) > 1
        ),
        markers=tuple(
            Marker(*place((x, y)), f"{series.label}, {chart.x_label} {_x(x, chart)}: {figure(y)}")
            for x, y in marked
        ),
        bands=tuple(_band(stretch, place) for stretch in _band_stretches(series)),
    )


def _band_stretches(series: Series) -> Iterator[list[tuple[float, float, float]]]:
    for there, stretch in groupby(series.band(), key=lambda span: span is not None):
        if there:
            yield [span for span in stretch if span is not None]


def _band(stretch: Sequence[tuple[float, float, float]], place: Place) -> str:
    around = [(x, high) for x, _, high in stretch] + [(x, low) for x, low, _ in reversed(stretch)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, around))


def thin(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most about `most` points: of each bucket its lowest and its highest, so that peaks stay."""
    if len(points) <= most:
        return list(points)
    size = -(-2 * len(points) // most)
    kept = []
    for start in range(0, len(points), size):
        bucket = points[start : start + size]
        kept += sorted({min(bucket, key=lambda p: p[1]), max(bucket, key=lambda p: p[1])})
    return kept


def _stretches(series: Series) -> Iterator[list[Point]]:
    stretch: list[Point] = []
    for x, y in zip(series.x, series.values, strict=True):
        if x is not None and y is not None:
            stretch.append((x, y))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _description(series: Series, chart: Chart) -> str:
    (first_x, first), (last_x, last) = series.points()[0], series.points()[-1]
    return (
        f"{series.label}: {figure(first)} at {chart.x_label} {_x(first_x, chart)}, "
        f"{figure(last)} at {_x(last_x, chart)} ({chart.unit})"
    )


def _x(x: float, chart: Chart) -> str:
    return figure(round(x) if chart.whole_x else x)


def round_ends(values: Sequence[float]) -> tuple[float, float]:
    """Axis ends that hold all values and are ticks themselves."""
    low, high = _spread(min(values), max(values), 0.0)
    step = 0.0
    first, last = low, high
    while step == 0.0 or (last - first) / step > MOST_TICKS * (1 + 1e-9):
        step = round_step(last - first, MOST_TICKS)
        first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return first, last


def _spread(low: float, high: float, least: float) -> tuple[float, float]:
    if high > low:
        return low, high
    pad = least or abs(low) / 10 or 1.0
    return low - pad, high + pad
