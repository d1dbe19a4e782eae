"""Charts for checks: the paper's ratios beside ours, and every run in execution order."""

from __future__ import annotations

from dataclasses import dataclass

from tierwise.model.extras import alt
from tierwise.model.statistics import Interval
from tierwise.report import numbers
from tierwise.report.charts.look import (
    Figure,
    Look,
    Mark,
    axis,
    figure,
    finish,
    group_colour,
    legend,
    level_y,
    plot,
    plotted,
    ratio_x,
    rows,
    shape_legend,
)
from tierwise.report.study.answer import Comparison

_SIDES = ["paper", "here"]


@dataclass(frozen=True)
class _Run(Mark):
    """One run in the order of execution."""

    order: int
    status: str


def paper_figure(comparison: Comparison) -> Figure | None:
    """Ratio of baseline to placement, in the paper and in our runs."""
    ratios = [
        Mark(f"{row.label}, {row.placement}", side, f"{numbers.ratio(value)}×", value)
        for row in comparison.paper
        if row.paper_ratio and row.our_ratio
        for side, value in zip(_SIDES, (row.paper_ratio, row.our_ratio), strict=True)
    ]

    def draw(look: Look) -> alt.LayerChart:
        title = f"{comparison.baseline} over placement"
        x = ratio_x(title, [Interval(one.value, None, None, 1) for one in ratios], look)
        y = rows([one.row for one in ratios], look, two_lines=look.narrow)
        pairs = zip(ratios[::2], ratios[1::2], strict=True)
        links = plot([{"row": paper.row, "value": paper.value, "here": here.value} for paper, here in pairs])
        line = links.mark_rule(strokeWidth=1.5, color=look.colour("line")).encode(y=y, x=x, x2="here:Q")
        base = plotted(ratios).encode(y=y, x=x)
        sides = [layer for side in _SIDES for layer in _side(base, side, look)]
        return finish(
            [line, *sides], look, 76 + 24 * len(ratios), "The paper's ratios beside ours", right_px=24
        )

    return figure("paper", f"Ratio of {comparison.baseline} to the placement", ratios, draw)


def _side(base: alt.Chart, side: str, look: Look) -> list[alt.Chart]:
    """The paper's values as large diamonds, ours as dots on top, so that both show where they agree."""
    sizes = alt.Scale(domain=_SIDES, range=[230, 60])
    shapes = alt.Scale(domain=_SIDES, range=["diamond", "circle"])
    colour = alt.Scale(domain=_SIDES, range=[look.colour("baseline"), look.colour("ink")])
    own = base.transform_filter(f"datum.group == '{side}'")
    return [
        own.mark_point(filled=True, opacity=1).encode(
            color=alt.Color("group:N", scale=colour, legend=legend(look, 2)),
            shape=alt.Shape("group:N", scale=shapes),
            size=alt.Size("group:N", scale=sizes),
        ),
        own.mark_text(dy=-15 if side == "paper" else 17, fontSize=11, color=look.colour("muted")).encode(
            text="text:N"
        ),
    ]


def order_figure(comparison: Comparison) -> Figure | None:
    """Elapsed time, or rate, of every run in execution order; it shows drift and outliers."""
    by_rate = comparison.measure == "rate"
    text = numbers.significant if by_rate else numbers.seconds
    runs = [
        _Run(name, name, f"run {point.order} {text(value)}", value, point.order, point.status)
        for name, points in comparison.validity.points.items()
        for point in points
        if (value := point.rate_per_s if by_rate else point.elapsed_s)
    ]
    every = [point.order for points in comparison.validity.points.values() for point in points]
    first, last = min(every), max(every)

    def draw(look: Look) -> alt.LayerChart:
        title, unit = ("Transactions a second", "") if by_rate else ("Elapsed time", "s")
        ticks = list(range(first, last + 1, max(1, (last - first) // 10)))
        x_axis = axis("Run, in the order of execution", values=ticks, grid=False)
        base = plotted(runs).encode(
            x=alt.X("order:Q", axis=x_axis, scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False)),
            y=level_y(title, unit, [one.value for one in runs], zero=False),
            color=group_colour(comparison.colours, look),
        )
        shapes = alt.Scale(domain=["ok", "invalid"], range=["circle", "cross"])
        statuses = shape_legend(look) if any(one.status == "invalid" for one in runs) else None
        dots = base.mark_point(filled=True, size=80, opacity=1).encode(
            shape=alt.Shape("status:N", scale=shapes, legend=statuses)
        )
        lines = base.mark_line(strokeWidth=1, opacity=0.35)
        return finish([lines, dots], look, 250, "Every run in the order it ran", right_px=12)

    return figure("order", "Every run in the order it ran", runs, draw)
