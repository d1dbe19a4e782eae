"""Charts for checks: the paper's ratios, every run in order, load and latency of the devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tierwise.lab.analysis.answer import Comparison
from tierwise.lab.analysis.summary import PERCENTILES, IoRow
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.statistics import Interval
from tierwise.report.charts.builders import (
    Bar,
    LinePoint,
    bar_chart,
    dot,
    grouped_dot_chart,
    line_chart,
    one_after_the_other,
    stacked_chart,
)
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
    log_x,
    percent_x,
    plot,
    plotted,
    ratio_x,
    rows,
    shape_legend,
    zero_x,
)
from tierwise.report.palette import ROLE_COLOURS

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
        x = ratio_x(title, [Interval(ratio.value, None, None, 1) for ratio in ratios], look)
        y = rows([ratio.row for ratio in ratios], look, two_lines=look.narrow)
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
            y=level_y(title, unit, [completed.value for completed in runs], zero=False),
            color=group_colour(comparison.colours, look),
        )
        shapes = alt.Scale(domain=["ok", "invalid"], range=["circle", "cross"])
        statuses = shape_legend(look) if any(completed.status == "invalid" for completed in runs) else None
        dots = base.mark_point(filled=True, size=80, opacity=1).encode(
            shape=alt.Shape("status:N", scale=shapes, legend=statuses)
        )
        lines = base.mark_line(strokeWidth=1, opacity=0.35)
        return finish([lines, dots], look, 250, "Every run in the order it ran", right_px=12)

    return figure("order", "Every run in the order it ran", runs, draw)


_MIB = 1 << 20


def busy_figure(comparison: Comparison) -> Figure | None:
    """Share of the elapsed time in which each role kept its device busy, in percent."""
    bars = [
        Bar(io.name, row.placement, numbers.percent(io.busy_share), 100 * io.busy_share)
        for row in comparison.rows
        for io in row.summary.busy_io
        if io.busy_share is not None and (io.reads or io.writes or io.flushes)
    ]

    def draw(look: Look) -> alt.LayerChart:
        x = percent_x("Device busy (% of elapsed time)")
        return bar_chart(bars, x, comparison.colours, look, "How busy each role kept its device")

    return figure("io", "Share of elapsed time in which the device was busy, by role", bars, draw)


def bytes_figure(comparison: Comparison) -> Figure | None:
    """MiB written and read, stacked by role."""
    return _volume(
        comparison,
        "bytes",
        "Bytes moved (MiB)",
        lambda io: {"written": io.write_bytes / _MIB, "read": io.read_bytes / _MIB},
        lambda mib: numbers.size(mib * _MIB),
    )


def requests_figure(comparison: Comparison) -> Figure | None:
    """Requests that reached the devices, stacked by role."""
    of = lambda io: {"written": io.writes, "read": io.reads}  # noqa: E731
    return _volume(comparison, "requests", "Requests", of, numbers.count)


def _volume(
    comparison: Comparison,
    name: str,
    title: str,
    of: Callable[[IoRow], dict[str, float]],
    text: Callable[[float], str],
) -> Figure | None:
    """``of`` gives the volume of a role in each direction."""
    slices = []
    for row in comparison.rows:
        for direction in ("written", "read"):
            parts = [
                (io.name, volume, text(volume)) for io in row.summary.io if (volume := of(io)[direction])
            ]
            slices += one_after_the_other(f"{row.placement}, {direction}", parts)

    def draw(look: Look) -> alt.LayerChart:
        return stacked_chart(slices, zero_x(title, look), ROLE_COLOURS, look, title)

    return figure(name, title, slices, draw)


def amplification_figure(comparison: Comparison) -> Figure | None:
    """Bytes at the devices over bytes written by the engine, and flash bytes over host bytes."""
    bars = [
        Bar(f"{row.placement}, {name}", "", f"{numbers.ratio(value)}×", value)
        for row in comparison.rows
        for name, value in row.summary.amplification.items()
    ]
    title = "Bytes written for each byte asked to be written"

    def draw(look: Look) -> alt.LayerChart:
        return bar_chart(bars, zero_x(title, look), {"": "place-1"}, look, title)

    return figure("amplification", title, bars, draw)


def latency_figure(comparison: Comparison) -> Figure | None:
    """Percentiles of the latency of all transactions, median and range of the runs."""
    points = [
        LinePoint(
            row.placement, row.placement, f"{name} {numbers.microseconds(spread.median)}",
            spread.median / 1e3, name, spread.least / 1e3, spread.most / 1e3,
        )
        for row in comparison.rows
        for name, spread in row.summary.latency.get("all", {}).items()
        if spread.least > 0
    ]  # fmt: skip

    def draw(look: Look) -> alt.LayerChart:
        y = level_y("Latency", "ms", [end for point in points for end in (point.low, point.high) if end])
        return line_chart(points, list(PERCENTILES), y, comparison.colours, look, "Latency of transactions")

    return figure("latency", "Latency of transactions", points, draw)


def patterns_figure(comparison: Comparison) -> Figure | None:
    """Throughput of every pattern of a device benchmark with its interval, on a log scale."""
    rates = [(row, row.mb_per_s) for row in (comparison.benchmark.rows if comparison.benchmark else [])]
    dots = [dot(row.title, row.placement, rate, numbers.significant, " MB/s") for row, rate in rates]

    def draw(look: Look) -> alt.LayerChart:
        ends = [end for _, rate in rates for end in (rate.estimate, rate.low, rate.high) if end]
        title = "MB/s (log scale)"
        return grouped_dot_chart(dots, log_x(title, ends), comparison.colours, look, title)

    return figure("patterns", "Throughput of each pattern", dots, draw)
