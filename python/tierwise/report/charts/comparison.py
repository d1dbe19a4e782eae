"""Placements compared: dots with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from tierwise.model.statistics import Bound, Interval
from tierwise.report import numbers
from tierwise.report.charts.look import Look, axis, colours, finish, line_at_one, plot, row_axis
from tierwise.report.study.answer import Comparison
from tierwise.report.study.rows import Row

Datum = dict[str, object]
TIMES = "format(datum.value, '~g') + '×'"
"""Labels of an axis of ratios."""
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_FEW_CLOSE_TICKS = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4)
_CLOSE_TICKS = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.75, 2, 2.5, 3, 4)


def level_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Elapsed time, or rate, of every placement: each run, the median and its interval."""
    by_rate = comparison.measure == "rate"
    title = "Transactions a second" if by_rate else "Elapsed time (s)"
    data = [
        _datum(
            row.placement,
            level,
            numbers.signed(level, numbers.significant(level.estimate) + ("/s" if by_rate else " s")),
            look,
        )
        for row in comparison.rows
        if (level := row.summary.rate if by_rate else row.summary.elapsed) is not None
    ]
    if not data:
        return None
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domainMin=0, nice=True),
        axis=axis(title, tickCount=5 if look.narrow else 8),
    )
    layers = _dots(comparison, data, x, look)
    runs = [] if by_rate else _runs(comparison)
    if runs:
        layers.insert(0, _cloud(comparison, data, runs, x, look))
    return finish(layers, look, _height_px(data), title)


def speedup_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Speed-up over the baseline, on a log scale, with a line at 1."""
    data = [
        _datum(
            row.placement,
            row.speedup,
            numbers.signed(row.speedup, f"{numbers.ratio(row.speedup.estimate)}×"),
            look,
        )
        for row in comparison.rows
        if row.speedup is not None
    ]
    if not data:
        return None
    low, high, ticks = ratio_domain([row.speedup for row in comparison.rows if row.speedup], look)
    title = f"Times faster than {comparison.baseline}"
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=axis(f"{title} (ratio scale)", values=ticks, labelExpr=TIMES),
    )
    layers = [line_at_one(x, look), *_dots(comparison, data, x, look)]
    return finish(layers, look, _height_px(data), title)


def ratio_domain(ratios: Sequence[Interval], look: Look) -> tuple[float, float, list[float]]:
    """Domain and ticks of a ratio scale that includes 1 and every interval."""
    ends = [end for r in ratios for end in (r.estimate, r.low, r.high) if end is not None]
    low, high = min(0.9, *(0.85 * end for end in ends)), max(1.1, *(1.1 * end for end in ends))
    close = _FEW_CLOSE_TICKS if look.narrow else _CLOSE_TICKS
    ticks = _TICKS if high / low > 4 else close
    return low, high, [tick for tick in ticks if low <= tick <= high]


def _datum(placement: str, value: Interval, text: str, look: Look) -> Datum:
    exact = value.bound is Bound.EXACT
    low, high = (value.low, value.high) if exact else (None, None)
    if not look.narrow:
        text += _span_text(low, high) if exact else "  (stopped at the cap)"
    return {"placement": placement, "value": value.estimate, "low": low, "high": high, "text": text}


def _span_text(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "  (one run)"
    figures = numbers.significant if high >= 1.95 else numbers.ratio
    return f"  ({numbers.span(figures(low), figures(high))})"


def _runs(comparison: Comparison) -> list[Datum]:
    return [
        {"placement": placement, "value": point.elapsed_s}
        for placement, points in comparison.validity.points.items()
        for point in points
        if point.status == "ok" and point.elapsed_s is not None
    ]


def _dots(comparison: Comparison, data: list[Datum], x: alt.X, look: Look) -> list[alt.Chart]:
    base = plot(data).encode(y=_rows(data, look))
    colour = _colour(comparison, look)
    ends = alt.X("low:Q", scale=x["scale"], axis=x["axis"])
    return [
        base.mark_rule(strokeWidth=9, strokeCap="butt", opacity=0.4).encode(
            x=ends, x2="high:Q", color=colour
        ),
        base.mark_point(filled=True, size=95, opacity=1).encode(x=x, color=colour),
        base.mark_text(align="left", fontSize=12 if look.narrow else 13, color=look.colour("ink")).encode(
            x=alt.value(alt.ExprRef("width + 10")), text="text:N"
        ),
    ]


def _cloud(comparison: Comparison, data: list[Datum], runs: list[Datum], x: alt.X, look: Look) -> alt.Chart:
    """Every valid run as a faint dot below its median."""
    dots = plot(runs).mark_point(filled=True, size=34, opacity=0.4, yOffset=13)
    cloud: alt.Chart = dots.encode(y=_rows(data, look), x=x, color=_colour(comparison, look))
    return cloud


def _rows(data: list[Datum], look: Look) -> alt.Y:
    names = [str(datum["placement"]) for datum in data]
    return alt.Y(
        "placement:N", sort=names, axis=row_axis(look), scale=alt.Scale(paddingInner=0.2, paddingOuter=0.2)
    )


def _colour(comparison: Comparison, look: Look) -> alt.Color:
    palette = comparison.colours
    return alt.Color("placement:N", scale=colours(palette, look), legend=None)


def _height_px(data: list[Datum]) -> int:
    return 46 + 48 * len(data)


def described_level(rows: Sequence[Row]) -> str:
    """The same chart in words."""
    parts = [
        f"{row.placement} {numbers.seconds(row.summary.elapsed.estimate)}"
        + (
            f" ({numbers.seconds_span(row.summary.elapsed)})"
            if numbers.seconds_span(row.summary.elapsed)
            else ""
        )
        for row in rows
        if row.summary.elapsed
    ]
    return f"Median elapsed time with 95 % interval: {'; '.join(parts)}."


def described_speedup(rows: Sequence[Row]) -> str:
    """The same chart in words."""
    parts = [
        f"{row.placement} {numbers.ratio(row.speedup.estimate)}"
        f" ({numbers.ratio_span(row.speedup) or 'one run'})"
        for row in rows
        if row.speedup
    ]
    return f"Times faster than the baseline with 95 % interval: {'; '.join(parts)}."
