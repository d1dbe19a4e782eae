"""A swept setting: whole runs over its values, and each lap's ratio to the least, in Chang's form."""

from __future__ import annotations

import altair as alt

from tierwise.model.statistics import Bound
from tierwise.report import numbers
from tierwise.report.charts.comparison import TIMES, Datum, ratio_domain
from tierwise.report.charts.look import (
    Look,
    axis,
    colours,
    finish,
    interval_bars,
    legend,
    line_at_one,
    log_scale,
    plot,
    row_axis,
)
from tierwise.report.palette import placement_names
from tierwise.report.study.sweeps import SweepLine, SweepResult

_WIDE_RANGE = 4
_MOST_ROWS = 40


def levels_chart(sweep: SweepResult, baseline: str, look: Look) -> alt.LayerChart | None:
    """Whole runs over the swept values, one line per placement; points slower with more are marked."""
    lines = [line for line in sweep.lines if line.lap is None and line.score is None]
    data = [datum for line in lines for datum in _points(line)]
    if not data:
        return None
    timed = lines[0].is_time
    y, y_axis, scale = _level_axis(lines, "Elapsed time (s" if timed else "Transactions a second (")
    palette = placement_names([line.placement for line in lines], baseline)
    x = alt.X(
        "at:N",
        sort=sweep.values,
        axis=alt.Axis(title=sweep.plain_name, labelAngle=0, domain=False, ticks=False, grid=False),
    )
    base = plot(data).encode(
        x=x,
        y=y,
        color=alt.Color(
            "placement:N", scale=colours(palette, look), legend=legend(look, 2 if look.narrow else 5)
        ),
    )
    ends = alt.Y("low:Q", scale=scale, axis=y_axis)
    layers = [
        base.mark_line(strokeWidth=1.5, opacity=0.6),
        base.transform_filter("datum.high != null")
        .mark_rule(strokeWidth=5, opacity=0.35)
        .encode(y=ends, y2="high:Q"),
        base.mark_point(filled=True, size=80, opacity=1),
        base.transform_filter("datum.slower")
        .mark_text(dy=-16, fontSize=13, fontWeight="bold", color=look.colour("place-2"))
        .encode(text=alt.TextValue("▲"), color=alt.ColorValue(look.colour("place-2"))),
    ]
    return finish(layers, look, 320, f"Over {sweep.plain_name}", right_px=14)


def _points(line: SweepLine) -> list[Datum]:
    return [
        {
            "placement": line.placement,
            "at": point.value,
            "value": point.level.estimate,
            "low": point.level.low,
            "high": None if point.level.bound is not Bound.EXACT else point.level.high,
            "slower": point.slower_than is not None,
        }
        for point in line.points
        if point.level
    ]


def _level_axis(lines: list[SweepLine], title: str) -> tuple[alt.Y, alt.Axis, alt.Scale]:
    """Axis and scale: linear from 0 if values are close together, otherwise logarithmic."""
    levels = [point.level for line in lines for point in line.points if point.level]
    ends = [end for one in levels for end in (one.estimate, one.low, one.high) if end]
    if max(ends) > _WIDE_RANGE * min(ends):
        scale, ticks = log_scale(ends)
        y_axis = axis(f"{title}, log scale)".replace("(,", "("), values=ticks, format="~g")
    else:
        scale = alt.Scale(domainMin=0, nice=True)
        y_axis = axis(f"{title})".removesuffix(" ()"), tickCount=5, format="~g")
    return alt.Y("value:Q", scale=scale, axis=y_axis), y_axis, scale


def ratios_chart(sweep: SweepResult, placement: str, look: Look) -> alt.LayerChart | None:
    """Speed-up of each lap and each score over the least value, under one placement."""
    lines = [line for line in sweep.lines if line.placement == placement and (line.lap or line.score)]
    found = [
        (line.lap or line.score, point, point.ratio)
        for line in lines[:_MOST_ROWS]
        for point in line.points
        if point.ratio
    ]
    if not found:
        return None
    low, high, ticks = ratio_domain([ratio for _, _, ratio in found], look)
    title = f"Times faster than with {sweep.plain_name} {sweep.values[0]}, {placement}"
    x_axis = axis(f"{title} (ratio scale)", values=ticks, labelExpr=TIMES)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    data = [
        {
            "row": name,
            "at": point.value,
            "value": ratio.estimate,
            "low": ratio.low if ratio.bound is Bound.EXACT else None,
            "high": ratio.high,
        }
        for name, point, ratio in found
    ]
    names = list(dict.fromkeys(str(name) for name, _, _ in found))
    values = placement_names(sweep.values[1:], "")
    base = plot(data).encode(
        y=alt.Y("row:N", sort=names, axis=row_axis(look)),
        yOffset=alt.YOffset("at:N", sort=list(values), scale=alt.Scale(domain=list(values))),
        color=alt.Color("at:N", scale=colours(values, look), legend=legend(look, 3 if look.narrow else 6)),
    )
    x = alt.X("value:Q", scale=scale, axis=x_axis)
    layers = [
        line_at_one(x, look),
        interval_bars(base, x, 5),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x),
    ]
    return finish(layers, look, 84 + len(names) * (14 + 12 * len(values)), title, right_px=24)


def described_levels(sweep: SweepResult) -> str:
    """The same chart in words."""
    lines = [line for line in sweep.lines if line.lap is None and line.score is None]
    parts = [
        f"{line.placement}: "
        + ", ".join(
            f"{point.value} {numbers.signed(point.level, numbers.significant(point.level.estimate))}"
            for point in line.points
            if point.level
        )
        for line in lines
    ]
    return f"Whole runs over {sweep.name}. {'; '.join(parts)}."


def described_ratios(sweep: SweepResult, placement: str) -> str:
    """The same chart in words."""
    parts = [
        f"{line.lap or line.score}: "
        + ", ".join(f"{p.value} {numbers.ratio(p.ratio.estimate)}" for p in line.points if p.ratio)
        for line in sweep.lines
        if line.placement == placement and (line.lap or line.score)
    ]
    return f"Times faster than with {sweep.name} {sweep.values[0]}. {'; '.join(parts)}."
