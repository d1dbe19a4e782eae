"""Charts for checks: the paper's ratios beside ours, and every run in execution order."""

from __future__ import annotations

import altair as alt

from tierwise.model.statistics import Interval
from tierwise.report import numbers
from tierwise.report.charts.comparison import TIMES, ratio_domain
from tierwise.report.charts.look import (
    Look,
    axis,
    colours,
    finish,
    legend,
    log_scale,
    plot,
    row_axis,
    shape_legend,
)
from tierwise.report.palette import placement_names
from tierwise.report.study.answer import Comparison

_WIDE_RANGE = 4


def paper_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Ratio of baseline to placement, in the paper and in our runs."""
    rows = [row for row in comparison.paper if row.paper_ratio and row.our_ratio]
    if not rows:
        return None
    labels = [f"{row.label}, {row.placement}" for row in rows]
    data = [
        {"label": label, "side": side, "ratio": value, "text": f"{numbers.ratio(value)}×"}
        for label, row in zip(labels, rows, strict=True)
        for side, value in (("paper", row.paper_ratio), ("here", row.our_ratio))
        if value is not None
    ]
    pairs = [
        {"label": label, "paper": row.paper_ratio, "here": row.our_ratio}
        for label, row in zip(labels, rows, strict=True)
    ]
    ratios = [
        Interval(value, None, None, 1) for row in rows for value in (row.paper_ratio, row.our_ratio) if value
    ]
    low, high, ticks = ratio_domain(ratios, look)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    title = f"{comparison.baseline} over placement (ratio scale)"
    x_axis = axis(title, values=ticks, labelExpr=TIMES)
    y = alt.Y("label:N", sort=labels, axis=row_axis(look, two_lines=look.narrow))
    x = alt.X("ratio:Q", scale=scale, axis=x_axis)
    link = plot(pairs).mark_rule(strokeWidth=1.5, color=look.colour("line"))
    base = plot(data).encode(y=y, x=x)
    sides = [_side(base, side, look) for side in ("paper", "here")]
    text = [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(dy=dy, fontSize=11, color=look.colour("muted"))
        .encode(text="text:N")
        for side, dy in (("paper", -15), ("here", 17))
    ]
    linked = link.encode(y=y, x=alt.X("paper:Q", scale=scale, axis=x_axis), x2="here:Q")
    return finish(
        [linked, *sides, *text], look, 76 + 48 * len(labels), "The paper's ratios beside ours", right_px=24
    )


def _side(base: alt.Chart, side: str, look: Look) -> alt.Chart:
    """The paper's values as large diamonds, ours as dots on top, so that both show where they agree."""
    sizes = alt.Scale(domain=["paper", "here"], range=[230, 60])
    shapes = alt.Scale(domain=["paper", "here"], range=["diamond", "circle"])
    colour = alt.Scale(domain=["paper", "here"], range=[look.colour("baseline"), look.colour("ink")])
    marks: alt.Chart = (
        base.transform_filter(f"datum.side == '{side}'")
        .mark_point(filled=True, opacity=1)
        .encode(
            color=alt.Color("side:N", scale=colour, legend=legend(look, 2)),
            shape=alt.Shape("side:N", scale=shapes),
            size=alt.Size("side:N", scale=sizes),
        )
    )
    return marks


def described_paper(comparison: Comparison) -> str:
    """The same chart in words."""
    parts = [
        f"{row.label} on {row.placement}: "
        f"paper {numbers.ratio(row.paper_ratio)}, here {numbers.ratio(row.our_ratio)}"
        for row in comparison.paper
        if row.paper_ratio and row.our_ratio
    ]
    return f"Ratio of the baseline to the placement. {'; '.join(parts)}."


def order_chart(comparison: Comparison, look: Look) -> alt.LayerChart | None:
    """Elapsed time of every run in execution order; it shows drift and outliers."""
    points = [(name, point) for name, several in comparison.validity.points.items() for point in several]
    data = [
        {"placement": name, "order": point.order, "s": point.elapsed_s, "status": point.status}
        for name, point in points
        if point.elapsed_s
    ]
    if not data:
        return None
    y = _time_scale([point.elapsed_s for _, point in points if point.elapsed_s])
    names = placement_names([row.placement for row in comparison.rows], comparison.baseline)
    orders = [point.order for _, point in points]
    first, last = min(orders), max(orders)
    ticks = list(range(first, last + 1, max(1, (last - first) // 10)))
    colour = alt.Color(
        "placement:N", scale=colours(names, look), legend=legend(look, 2 if look.narrow else 5)
    )
    x_axis = axis("Run, in the order of execution", values=ticks, grid=False, format="d")
    x = alt.X("order:Q", axis=x_axis, scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False))
    base = plot(data).encode(x=x, y=y, color=colour)
    shapes = alt.Scale(domain=["ok", "invalid"], range=["circle", "cross"])
    statuses = shape_legend(look) if any(point.status == "invalid" for _, point in points) else None
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        shape=alt.Shape("status:N", scale=shapes, legend=statuses)
    )
    lines = base.mark_line(strokeWidth=1, opacity=0.35)
    return finish([lines, dots], look, 250, "Every run in the order it ran", right_px=12)


def _time_scale(times_s: list[float]) -> alt.Y:
    if max(times_s) <= _WIDE_RANGE * min(times_s):
        return alt.Y(
            "s:Q", scale=alt.Scale(zero=False), axis=axis("Elapsed time (s)", tickCount=5, format="~g")
        )
    scale, ticks = log_scale(times_s)
    return alt.Y("s:Q", scale=scale, axis=axis("Elapsed time (s, log scale)", values=ticks, format="~g"))


def described_order(comparison: Comparison) -> str:
    """The same chart in words."""
    return (
        f"Elapsed time of {comparison.validity.runs} runs in the order they ran, "
        f"{comparison.validity.valid} of them valid."
    )
