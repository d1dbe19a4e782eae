"""Dots with intervals on rows: one dot in each row, or one for each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tierwise.model.extras import alt
from tierwise.model.statistics import Bound, Interval
from tierwise.report import numbers
from tierwise.report.charts.figure import Mark, plotted
from tierwise.report.charts.look import Look, finish, group_colour, line_at_one, rows

_MANY_ROWS = 12
_SHAPES = {Bound.EXACT: "circle", Bound.AT_LEAST: "triangle-right", Bound.AT_MOST: "triangle-left"}
"""A triangle points to where the true value lies."""


@dataclass(frozen=True)
class Dot(Mark):
    """One estimate on a row, in the colour of its group. Without an interval it has neither end."""

    span: str
    """The interval, or why there is none."""
    low: float | None
    high: float | None
    bound: str = Bound.EXACT.value


def dot(row: str, group: str, found: Interval, shown: Callable[[float], str], unit: str = "") -> Dot:
    """The dot of an interval; only an exact estimate shows its ends."""
    exact = found.bound is Bound.EXACT
    low, high = (found.low, found.high) if exact else (None, None)
    text = numbers.signed(found, shown(found.estimate) + unit)
    if not exact:
        span = "stopped at the cap"
    else:
        span = "one run" if low is None or high is None else numbers.span(shown(low), shown(high))
    return Dot(row, group, text, found.estimate, span, low, high, found.bound.value)


def dot_chart(
    dots: Sequence[Dot],
    x: alt.X,
    palette: Mapping[str, str],
    look: Look,
    title: str,
    *,
    line: bool = False,
    below: Sequence[alt.Chart] = (),
) -> alt.LayerChart:
    """A row for each dot, its text on the right.

    Args:
        dots: in the order of the rows.
        x: axis and scale of their values.
        palette: group -> name of its colour.
        look: look of the drawing.
        title: shown if the look has titles.
        line: whether to mark ratio 1, where both sides are equal.
        below: layers behind the dots.
    """
    shown = dots if look.narrow else [replace(one, text=f"{one.text}  ({one.span})") for one in dots]
    base = plotted(shown).encode(
        y=rows([one.row for one in dots], look, two_lines=True),
        color=group_colour(palette, look, shown=False),
    )
    text = base.mark_text(align="left", fontSize=12 if look.narrow else 13).encode(
        x=alt.value(alt.ExprRef("width + 10")), text="text:N", color=alt.ColorValue(look.colour("ink"))
    )
    layers = [*_line(line, x, look), *below, *_dots(base, x, 9, 95), text]
    row_px = 48 if len(dots) <= _MANY_ROWS else 36
    return finish(layers, look, 46 + row_px * len(dots), title)


def grouped_dot_chart(
    dots: Sequence[Dot], x: alt.X, palette: Mapping[str, str], look: Look, title: str, *, line: bool = False
) -> alt.LayerChart:
    """A row for several dots, one below the other, told apart by a legend; arguments as for one dot."""
    labels = list(dict.fromkeys(one.row for one in dots))
    base = plotted(dots).encode(
        y=rows(labels, look, 0.28),
        yOffset=alt.YOffset("group:N", sort=list(palette), scale=alt.Scale(domain=list(palette))),
        color=group_colour(palette, look),
    )
    height = 84 + len(labels) * (14 + 12 * len(palette))
    return finish([*_line(line, x, look), *_dots(base, x, 5, 70)], look, height, title, right_px=24)


def _line(wanted: bool, x: alt.X, look: Look) -> list[alt.Chart]:
    return [line_at_one(x, look)] if wanted else []


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
