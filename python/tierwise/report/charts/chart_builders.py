"""The builders of charts: bars, dots with intervals, lines over ordered values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.statistics import BoundKind, Interval
from tierwise.report.charts.chart_style import (
    ChartLook,
    ChartMark,
    chart_of_records,
    finish_chart,
    group_colour,
    plot_marks,
    row_axis,
)
from tierwise.report.palette import readable_text_colour

_PX_OF_CHARACTER = 6.5


@dataclass(frozen=True)
class Bar(ChartMark):
    """One bar of a group on a row, from ``start`` to ``value``; ``hollow`` if the true value is greater."""

    start: float = 0.0
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True)
class BarSlice(ChartMark):
    """A part of a stacked bar, from ``value`` to ``end``; ``label`` is written inside."""

    end: float
    label: str = ""


def bar_chart(
    bars: Sequence[Bar], x: alt.X, palette: Mapping[str, str], look: ChartLook, title: str
) -> alt.LayerChart:
    """Bars side by side with their figures at the end, a thin line for each interval."""
    labels = list(dict.fromkeys(bar.row for bar in bars))
    base = plot_marks(bars).encode(
        y=row_axis(labels, look, 0.28, two_lines=look.narrow),
        yOffset=alt.YOffset(
            "group:N", sort=list(palette), scale=alt.Scale(domain=list(palette), paddingInner=0.12)
        ),
        x=x,
        color=group_colour(palette, look, len(palette) > 1),
    )
    hollow = base.transform_filter("datum.hollow").encode(
        x2="start:Q", stroke=alt.Stroke("group:N", scale=base.encoding.color["scale"], legend=None)
    )
    ends = alt.X("low:Q", scale=x["scale"], axis=x["axis"])
    ink, muted = (alt.ColorValue(look.colour(name)) for name in ("ink", "muted"))
    layers = [
        base.transform_filter("!datum.hollow").mark_bar(opacity=0.9).encode(x2="start:Q"),
        hollow.mark_bar(fillOpacity=0.15, strokeDash=[4, 3], strokeWidth=1.5),
        base.transform_filter("datum.high != null")
        .mark_rule(strokeWidth=1.5)
        .encode(x=ends, x2="high:Q", color=ink),
        base.mark_text(align="left", dx=6, fontSize=11).encode(text="text:N", color=muted),
    ]
    height = (52 if len(palette) == 1 else 84) + len(labels) * (14 + 16 * len(palette))
    room = 12 + _PX_OF_CHARACTER * max(len(bar.text) for bar in bars)
    return finish_chart(layers, look, height, title, right_px=round(room))


def stacked_chart(
    slices: Sequence[BarSlice], x: alt.X, palette: Mapping[str, str], look: ChartLook, title: str
) -> alt.LayerChart:
    """One bar for each row, of slices one after the other."""
    labels = list(dict.fromkeys(bar_slice.row for bar_slice in slices))
    seen = {bar_slice.group for bar_slice in slices}
    palette = {group: colour for group, colour in palette.items() if group in seen}
    data = [
        asdict(bar_slice) | {"ink": readable_text_colour(palette[bar_slice.group], look.colour)}
        for bar_slice in slices
    ]
    base = chart_of_records(data).encode(y=row_axis(labels, look, 0.3, two_lines=look.narrow))
    bars = base.mark_bar(stroke=look.colour("ground"), strokeWidth=1).encode(
        x=x, x2="end:Q", color=group_colour(palette, look)
    )
    labelled = base.transform_filter("datum.label != ''").transform_calculate(
        middle="(datum.value + datum.end) / 2"
    )
    text = labelled.mark_text(fontSize=12, fontWeight="bold").encode(
        x="middle:Q", text="label:N", color=alt.Color("ink:N", scale=None)
    )
    legend_rows = -(-len(palette) // (2 if look.narrow else 4))
    return finish_chart([bars, text], look, 52 + 42 * len(labels) + 22 * legend_rows, title, right_px=20)


def stacked_slices(
    row: str, parts: Iterable[tuple[str, float, str]], least_labelled: float = math.inf
) -> list[BarSlice]:
    """The slices of one row, from (group, size, text); one of ``least_labelled`` or more carries its size."""
    slices: list[BarSlice] = []
    start = 0.0
    for group, size, text in parts:
        label = f"{size:.0f}" if size >= least_labelled else ""
        slices.append(BarSlice(row, group, text, start, start + size, label))
        start += size
    return slices


_MANY_ROWS = 12
_SHAPES = {
    BoundKind.EXACT: "circle",
    BoundKind.AT_LEAST: "triangle-right",
    BoundKind.AT_MOST: "triangle-left",
}
"""A triangle points to where the true value lies."""


@dataclass(frozen=True)
class Dot(ChartMark):
    """One estimate on a row, in the colour of its group. Without an interval it has neither end."""

    span: str
    """The interval, or why there is none."""
    low: float | None
    high: float | None
    bound: str = BoundKind.EXACT.value


def dot_of_interval(
    row: str, group: str, interval: Interval, shown: Callable[[float], str], unit: str = ""
) -> Dot:
    """The dot of an interval; only an exact estimate shows its ends."""
    exact = interval.bound is BoundKind.EXACT
    low, high = (interval.low, interval.high) if exact else (None, None)
    text = numbers.with_bound_sign(interval, shown(interval.estimate) + unit)
    if not exact:
        span = "stopped at the cap"
    else:
        span = "one run" if low is None or high is None else numbers.range_text(shown(low), shown(high))
    return Dot(row, group, text, interval.estimate, span, low, high, interval.bound.value)


def dot_chart(
    dots: Sequence[Dot],
    x: alt.X,
    palette: Mapping[str, str],
    look: ChartLook,
    title: str,
    *,
    line: bool = False,
    below: Sequence[alt.Chart] = (),
) -> alt.LayerChart:
    """A row for each dot, its text on the right; a ``line`` marks ratio 1, where both sides are equal."""
    shown = dots if look.narrow else [replace(dot, text=f"{dot.text}  ({dot.span})") for dot in dots]
    base = plot_marks(shown).encode(
        y=row_axis([dot.row for dot in dots], look, two_lines=True),
        color=group_colour(palette, look, shown=False),
    )
    text = base.mark_text(align="left", fontSize=12 if look.narrow else 13).encode(
        x=alt.value(alt.ExprRef("width + 10")), text="text:N", color=alt.ColorValue(look.colour("ink"))
    )
    layers = [*_line(line, x, look), *below, *_dots(base, x, 9, 95), text]
    row_px = 48 if len(dots) <= _MANY_ROWS else 36
    return finish_chart(layers, look, 46 + row_px * len(dots), title)


def grouped_dot_chart(
    dots: Sequence[Dot],
    x: alt.X,
    palette: Mapping[str, str],
    look: ChartLook,
    title: str,
    *,
    line: bool = False,
) -> alt.LayerChart:
    """A row for several dots, one below the other, told apart by a legend; arguments as for one dot."""
    labels = list(dict.fromkeys(dot.row for dot in dots))
    base = plot_marks(dots).encode(
        y=row_axis(labels, look, 0.28),
        yOffset=alt.YOffset("group:N", sort=list(palette), scale=alt.Scale(domain=list(palette))),
        color=group_colour(palette, look),
    )
    height = 84 + len(labels) * (14 + 12 * len(palette))
    return finish_chart([*_line(line, x, look), *_dots(base, x, 5, 70)], look, height, title, right_px=24)


def _line(wanted: bool, x: alt.X, look: ChartLook) -> list[alt.Chart]:
    """Line at ratio 1, where both sides are equal."""
    rule = chart_of_records([{"value": 1}]).mark_rule(
        strokeWidth=1.5, strokeDash=[2, 3], color=look.colour("muted")
    )
    return [rule.encode(x=x)] if wanted else []


def _dots(base: alt.Chart, x: alt.X, width_px: int, size_px2: int) -> list[alt.Chart]:
    """Pale bars for intervals, and the dots on top."""
    known = base.transform_filter("datum.low != null")
    bars = known.mark_rule(strokeWidth=width_px, strokeCap="butt", opacity=0.4)
    points = base.mark_point(filled=True, size=size_px2, opacity=1)
    shapes = alt.Scale(domain=[bound.value for bound in _SHAPES], range=list(_SHAPES.values()))
    return [
        bars.encode(x=alt.X("low:Q", scale=x["scale"], axis=x["axis"]), x2="high:Q"),
        points.encode(x=x, shape=alt.Shape("bound:N", scale=shapes, legend=None)),
    ]


@dataclass(frozen=True)
class LinePoint(ChartMark):
    """A point of the line ``group`` at ``at``; ``row`` and ``text`` say the same in words."""

    at: str
    low: float | None
    high: float | None
    flagged: bool = False


def line_chart(
    points: Sequence[LinePoint],
    order: Sequence[str],
    y: alt.Y,
    palette: Mapping[str, str],
    look: ChartLook,
    title: str,
    *,
    x_title: str | None = None,
) -> alt.LayerChart:
    """Lines side by side at each value of ``order``; flagged points carry a ▲."""
    x_axis = alt.Axis(
        title=x_title, domain=False, ticks=False, grid=False, labelAngle=0, labelColor=look.colour("ink")
    )
    base = plot_marks(points).encode(
        x=alt.X("at:N", sort=list(order), axis=x_axis, scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2)),
        xOffset=alt.XOffset("group:N", sort=list(palette), scale=alt.Scale(domain=list(palette))),
        y=y,
        color=group_colour(palette, look),
    )
    ends = alt.Y("low:Q", scale=y["scale"], axis=y["axis"])
    layers = [
        base.transform_filter("datum.low != null && datum.high != null")
        .mark_rule(strokeWidth=4, opacity=0.4)
        .encode(y=ends, y2="high:Q"),
        base.mark_line(strokeWidth=1.5, opacity=0.55),
        base.mark_point(filled=True, size=85, opacity=1, stroke=look.colour("ground"), strokeWidth=1.5),
        base.transform_filter("datum.flagged")
        .mark_text(dy=-16, fontSize=13, fontWeight="bold")
        .encode(text=alt.TextValue("▲"), color=alt.ColorValue(look.colour("place-2"))),
    ]
    return finish_chart(layers, look, 330, title, right_px=14)
