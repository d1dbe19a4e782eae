"""Figures of placements, laps, swept settings and two sets of results.

And of checks: the paper's ratios, every run in order, load and latency of the devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tierwise.lab.analysis.lap_comparison import LapCell, shown_laps
from tierwise.lab.analysis.placement_summary import PERCENTILES, WAIT_CLASSES, IoRow
from tierwise.lab.analysis.results_comparison import ResultsComparison
from tierwise.lab.analysis.study_answer import PlacementComparison
from tierwise.lab.analysis.sweeps import SweepResult
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.statistics import BoundKind, Interval
from tierwise.model.units import MIB
from tierwise.report.charts.chart_builders import (
    Bar,
    BarSlice,
    LinePoint,
    bar_chart,
    dot_chart,
    dot_of_interval,
    grouped_dot_chart,
    line_chart,
    stacked_chart,
    stacked_slices,
)
from tierwise.report.charts.chart_style import (
    ChartLook,
    ChartMark,
    chart_of_marks,
    chart_of_records,
    colour_legend,
    finish_chart,
    group_colour,
    level_y_axis,
    log_x_axis,
    percent_x_axis,
    plot_marks,
    quantitative_axis,
    ratio_x_axis,
    row_axis,
    shape_legend,
    zero_x_axis,
)
from tierwise.report.document import Chart
from tierwise.report.palette import ROLE_COLOURS, placement_colour_names
from tierwise.results import WaitClass

_MOST_NORMALISED = 12


def lap_times_figure(comparison: PlacementComparison) -> Chart | None:
    """Median time of every lap with its interval, on a log scale; capped laps are hollow."""
    timed = [
        (lap, cell, cell.elapsed)
        for lap in shown_laps(comparison.laps)
        for cell in lap.cells
        if cell.elapsed and cell.elapsed.estimate > 0
    ]
    ends = [end for _, _, time in timed for end in (time.estimate, time.low, time.high) if end]
    if not ends:
        return None
    x = log_x_axis("Time of each lap (s, log scale)", [*ends, 0.8 * min(ends)])
    bars = [
        Bar(
            lap.label, cell.placement, _text(cell, numbers.seconds_text(time.estimate)), time.estimate,
            start=x["scale"]["domain"][0], low=time.low, high=None if cell.stopped else time.high,
            hollow=cell.stopped,
        )
        for lap, cell, time in timed
    ]  # fmt: skip

    def draw(look: ChartLook) -> alt.LayerChart:
        return bar_chart(bars, x, comparison.colours, look, "Time of each lap (s, log scale)")

    return chart_of_marks("laps", "Median time of each lap", bars, draw)


def normalised_figure(comparison: PlacementComparison) -> Chart | None:
    """Time of every lap in percent of its slowest placement: less is better."""
    laps = shown_laps(comparison.laps)
    if len(laps) > _MOST_NORMALISED or len(comparison.rows) < 2:
        return None
    bars = [
        Bar(
            lap.label,
            cell.placement,
            _text(cell, numbers.percent_text(share)),
            100 * share,
            hollow=cell.stopped,
        )
        for lap in laps
        for cell in lap.cells
        if cell.elapsed and lap.slowest_s and (share := cell.elapsed.estimate / lap.slowest_s)
    ]
    title = "Time of each lap (% of the slowest placement)"

    def draw(look: ChartLook) -> alt.LayerChart:
        return bar_chart(bars, percent_x_axis(title), comparison.colours, look, title)

    return chart_of_marks("laps-normalised", title, bars, draw)


def lap_ratios_figure(comparison: PlacementComparison) -> Chart | None:
    """Speed-up of each lap over the baseline, with its interval; a triangle marks a bound."""
    points = [
        (lap.label, cell.placement, cell.speedup)
        for lap in shown_laps(comparison.laps)
        for cell in lap.cells
        if cell.speedup
    ]
    dots = [dot_of_interval(lap, placement, ratio, numbers.ratio_text) for lap, placement, ratio in points]
    palette = {name: comparison.colours[name] for name in comparison.colours if name != comparison.baseline}
    title = f"Times faster than {comparison.baseline}"

    def draw(look: ChartLook) -> alt.LayerChart:
        x = ratio_x_axis(title, [ratio for _, _, ratio in points], look)
        return grouped_dot_chart(dots, x, palette, look, title, line=True)

    return chart_of_marks("laps-speedup", f"{title}, by lap", dots, draw)


def _text(cell: LapCell, figure: str) -> str:
    return f"≥ {figure}, capped" if cell.stopped else figure


_MOST_LINES = 40


def sweep_levels_figure(sweep: SweepResult, baseline: str) -> Chart | None:
    """Whole runs over the swept values, one line per placement; points slower with more are marked."""
    lines = [line for line in sweep.lines if line.lap is None and line.score is None]
    points = [
        LinePoint(
            line.placement, line.placement,
            f"{point.value} {numbers.with_bound_sign(level, numbers.significant_text(level.estimate))}",
            level.estimate, point.value, level.low, level.high if level.bound is BoundKind.EXACT else None,
            point.slower_than is not None,
        )
        for line in lines
        for point in line.points
        if (level := point.level)
    ]  # fmt: skip
    palette = placement_colour_names([line.placement for line in lines], baseline)
    title, unit = ("Elapsed time", "s") if lines and lines[0].is_time else ("Transactions a second", "")

    def draw(look: ChartLook) -> alt.LayerChart:
        y = level_y_axis(
            title, unit, [end for point in points for end in (point.value, point.low, point.high) if end]
        )
        over = f"Over {sweep.plain_name}"
        return line_chart(points, sweep.values, y, palette, look, over, x_title=sweep.plain_name)

    return chart_of_marks("levels", f"Whole runs over {sweep.name}", points, draw)


def sweep_ratios_figure(sweep: SweepResult, placement: str, number: int) -> Chart | None:
    """Speed-up of each lap and each score over the least value, under one placement."""
    lines = [line for line in sweep.lines if line.placement == placement and (line.lap or line.score)]
    points = [
        (line.lap or line.score or "", point.value, point.ratio)
        for line in lines[:_MOST_LINES]
        for point in line.points
        if point.ratio
    ]
    dots = [dot_of_interval(name, value, ratio, numbers.ratio_text) for name, value, ratio in points]
    how = "better" if any(line.score for line in lines) else "faster"
    title = f"Times {how} than with {sweep.plain_name} {sweep.values[0]}, {placement}"

    def draw(look: ChartLook) -> alt.LayerChart:
        x = ratio_x_axis(title, [ratio for _, _, ratio in points], look)
        return grouped_dot_chart(
            dots, x, placement_colour_names(sweep.values[1:], ""), look, title, line=True
        )

    return chart_of_marks(f"ratios-{number}", title, dots, draw)


WAIT_NAMES: dict[WaitClass, str] = {
    "log_sync": "log sync",
    "log_lock": "log lock",
    "data_read": "data read",
    "data_write": "data write",
    "lock": "row and other locks",
    "cpu": "on CPU",
    "client": "waiting for client",
    "other": "other",
}


def time_or_rate_figure(comparison: PlacementComparison) -> Chart | None:
    """Elapsed time, or rate, of every placement: each run, the median and its interval."""
    by_rate = comparison.measure == "rate"
    title, unit = ("Transactions a second", "/s") if by_rate else ("Elapsed time (s)", " s")
    dots = [
        dot_of_interval(row.placement, row.placement, level, numbers.significant_text, unit)
        for row in comparison.rows
        if (level := row.summary.rate if by_rate else row.summary.elapsed) is not None
    ]

    def draw(look: ChartLook) -> alt.LayerChart:
        x = zero_x_axis(title, look)
        runs = [
            {"row": name, "group": name, "value": value}
            for name, points in comparison.validity.points.items()
            for point in points
            if point.status == "ok" and (value := point.rate_per_s if by_rate else point.elapsed_s)
        ]
        cloud = chart_of_records(runs).mark_point(filled=True, size=34, opacity=0.4, yOffset=13)
        cloud = cloud.encode(
            y=row_axis([dot.row for dot in dots], look, two_lines=True),
            x=x,
            color=group_colour(comparison.colours, look, shown=False),
        )
        return dot_chart(dots, x, comparison.colours, look, title, below=[cloud] if runs else [])

    return chart_of_marks("elapsed", f"{title}, median with 95 % interval", dots, draw)


def speedup_figure(comparison: PlacementComparison) -> Chart | None:
    """Ratio to the baseline, on a log scale, with a line at 1."""
    title = comparison.ratio_title
    speedups = {row.placement: row.speedup for row in comparison.rows if row.speedup is not None}
    dots = [dot_of_interval(name, name, ratio, numbers.ratio_text, "×") for name, ratio in speedups.items()]

    def draw(look: ChartLook) -> alt.LayerChart:
        x = ratio_x_axis(title, list(speedups.values()), look)
        return dot_chart(dots, x, comparison.colours, look, title, line=True)

    return chart_of_marks("speedup", f"{title}, with 95 % interval", dots, draw)


def waits_figure(comparison: PlacementComparison) -> Chart | None:
    """Shares of session time, in percent, mean over the valid runs."""
    palette = {WAIT_NAMES[kind]: f"wait-{kind}" for kind in WAIT_CLASSES}

    def slices(least_labelled: float) -> list[BarSlice]:
        shares = [
            (
                row.placement,
                [
                    (WAIT_NAMES[kind], 100 * wait, numbers.percent_text(wait))
                    for kind, wait in row.summary.waits.items()
                ],
            )
            for row in comparison.rows
        ]
        return [
            bar_slice for name, parts in shares for bar_slice in stacked_slices(name, parts, least_labelled)
        ]

    def draw(look: ChartLook) -> alt.LayerChart:
        x = percent_x_axis("Share of session time (%)")
        return stacked_chart(slices(12 if look.narrow else 4.5), x, palette, look, "Where session time went")

    return chart_of_marks("waits", "Share of session time", slices(math.inf), draw)


_MOST_ROWS = 60


def results_pairs_figure(comparison: ResultsComparison) -> Chart | None:
    """How many times faster B is than A; ``None`` if no time or rate has a counterpart in the other set."""
    speeds = {
        ", ".join(part for part in (name or "whole run", pair.label) if part): ratio
        for pair in comparison.pairs
        for name, ratio in pair.speeds.items()
    }
    shown = dict(list(speeds.items())[:_MOST_ROWS])
    dots = [dot_of_interval(name, "", ratio, numbers.ratio_text, "×") for name, ratio in shown.items()]
    title = "How many times faster B is than A"

    def draw(look: ChartLook) -> alt.LayerChart:
        x = ratio_x_axis(title, list(shown.values()), look)
        return dot_chart(dots, x, {"": "place-1"}, look, "B against A", line=True)

    return chart_of_marks("speed", title, dots, draw)


_SIDES = ["paper", "here"]


@dataclass(frozen=True)
class _Run(ChartMark):
    """One run in the order of execution."""

    order: int
    status: str


def paper_figure(comparison: PlacementComparison) -> Chart | None:
    """Ratio of baseline to placement, in the paper and in our runs."""
    ratios = [
        ChartMark(f"{row.label}, {row.placement}", side, f"{numbers.ratio_text(value)}×", value)
        for row in comparison.paper
        if row.paper_ratio and row.our_ratio
        for side, value in zip(_SIDES, (row.paper_ratio, row.our_ratio), strict=True)
    ]

    def draw(look: ChartLook) -> alt.LayerChart:
        title = f"{comparison.baseline} over placement"
        x = ratio_x_axis(title, [Interval(ratio.value, None, None, 1) for ratio in ratios], look)
        y = row_axis([ratio.row for ratio in ratios], look, two_lines=look.narrow)
        pairs = zip(ratios[::2], ratios[1::2], strict=True)
        links = chart_of_records(
            [{"row": paper.row, "value": paper.value, "here": here.value} for paper, here in pairs]
        )
        line = links.mark_rule(strokeWidth=1.5, color=look.colour("line")).encode(y=y, x=x, x2="here:Q")
        base = plot_marks(ratios).encode(y=y, x=x)
        sides = [layer for side in _SIDES for layer in _side(base, side, look)]
        return finish_chart(
            [line, *sides], look, 76 + 24 * len(ratios), "The paper's ratios beside ours", right_px=24
        )

    return chart_of_marks("paper", f"Ratio of {comparison.baseline} to the placement", ratios, draw)


def _side(base: alt.Chart, side: str, look: ChartLook) -> list[alt.Chart]:
    """The paper's values as large diamonds, ours as dots on top, so that both show where they agree."""
    sizes = alt.Scale(domain=_SIDES, range=[230, 60])
    shapes = alt.Scale(domain=_SIDES, range=["diamond", "circle"])
    colour = alt.Scale(domain=_SIDES, range=[look.colour("baseline"), look.colour("ink")])
    own = base.transform_filter(f"datum.group == '{side}'")
    return [
        own.mark_point(filled=True, opacity=1).encode(
            color=alt.Color("group:N", scale=colour, legend=colour_legend(look, 2)),
            shape=alt.Shape("group:N", scale=shapes),
            size=alt.Size("group:N", scale=sizes),
        ),
        own.mark_text(dy=-15 if side == "paper" else 17, fontSize=11, color=look.colour("muted")).encode(
            text="text:N"
        ),
    ]


def execution_order_figure(comparison: PlacementComparison) -> Chart | None:
    """Elapsed time, or rate, of every run in execution order; it shows drift and outliers."""
    by_rate = comparison.measure == "rate"
    text = numbers.significant_text if by_rate else numbers.seconds_text
    runs = [
        _Run(name, name, f"run {point.order} {text(value)}", value, point.order, point.status)
        for name, points in comparison.validity.points.items()
        for point in points
        if (value := point.rate_per_s if by_rate else point.elapsed_s)
    ]
    every = [point.order for points in comparison.validity.points.values() for point in points]
    first, last = min(every), max(every)

    def draw(look: ChartLook) -> alt.LayerChart:
        title, unit = ("Transactions a second", "") if by_rate else ("Elapsed time", "s")
        ticks = list(range(first, last + 1, max(1, (last - first) // 10)))
        x_axis = quantitative_axis("Run, in the order of execution", values=ticks, grid=False)
        base = plot_marks(runs).encode(
            x=alt.X("order:Q", axis=x_axis, scale=alt.Scale(domain=[first - 0.5, last + 0.5], nice=False)),
            y=level_y_axis(title, unit, [completed.value for completed in runs], zero=False),
            color=group_colour(comparison.colours, look),
        )
        shapes = alt.Scale(domain=["ok", "invalid"], range=["circle", "cross"])
        statuses = shape_legend(look) if any(completed.status == "invalid" for completed in runs) else None
        dots = base.mark_point(filled=True, size=80, opacity=1).encode(
            shape=alt.Shape("status:N", scale=shapes, legend=statuses)
        )
        lines = base.mark_line(strokeWidth=1, opacity=0.35)
        return finish_chart([lines, dots], look, 250, "Every run in the order it ran", right_px=12)

    return chart_of_marks("order", "Every run in the order it ran", runs, draw)


def device_busy_figure(comparison: PlacementComparison) -> Chart | None:
    """Share of the elapsed time in which each role kept its device busy, in percent."""
    bars = [
        Bar(io.name, row.placement, numbers.percent_text(io.busy_share), 100 * io.busy_share)
        for row in comparison.rows
        for io in row.summary.busy_io
        if io.busy_share is not None and (io.reads or io.writes or io.flushes)
    ]

    def draw(look: ChartLook) -> alt.LayerChart:
        x = percent_x_axis("Device busy (% of elapsed time)")
        return bar_chart(bars, x, comparison.colours, look, "How busy each role kept its device")

    return chart_of_marks("io", "Share of elapsed time in which the device was busy, by role", bars, draw)


def role_bytes_figure(comparison: PlacementComparison) -> Chart | None:
    """MiB written and read, stacked by role."""
    return _volume(
        comparison,
        "bytes",
        "Bytes moved (MiB)",
        lambda io: {"written": io.write_bytes / MIB, "read": io.read_bytes / MIB},
        lambda mib: numbers.size_text(mib * MIB),
    )


def device_requests_figure(comparison: PlacementComparison) -> Chart | None:
    """Requests that reached the devices, stacked by role."""
    of = lambda io: {"written": io.writes, "read": io.reads}  # noqa: E731
    return _volume(comparison, "requests", "Requests", of, numbers.count_text)


def _volume(
    comparison: PlacementComparison,
    name: str,
    title: str,
    of: Callable[[IoRow], dict[str, float]],
    text: Callable[[float], str],
) -> Chart | None:
    """``of`` gives the volume of a role in each direction."""
    slices = []
    for row in comparison.rows:
        for direction in ("written", "read"):
            parts = [
                (io.name, volume, text(volume)) for io in row.summary.io if (volume := of(io)[direction])
            ]
            slices += stacked_slices(f"{row.placement}, {direction}", parts)

    def draw(look: ChartLook) -> alt.LayerChart:
        return stacked_chart(slices, zero_x_axis(title, look), ROLE_COLOURS, look, title)

    return chart_of_marks(name, title, slices, draw)


def amplification_figure(comparison: PlacementComparison) -> Chart | None:
    """Bytes at the devices over bytes written by the engine, and flash bytes over host bytes."""
    bars = [
        Bar(f"{row.placement}, {name}", "", f"{numbers.ratio_text(value)}×", value)
        for row in comparison.rows
        for name, value in row.summary.amplification.items()
    ]
    title = "Bytes written for each byte asked to be written"

    def draw(look: ChartLook) -> alt.LayerChart:
        return bar_chart(bars, zero_x_axis(title, look), {"": "place-1"}, look, title)

    return chart_of_marks("amplification", title, bars, draw)


def latency_figure(comparison: PlacementComparison) -> Chart | None:
    """Percentiles of the latency of all transactions, median and range of the runs."""
    points = [
        LinePoint(
            row.placement, row.placement, f"{name} {numbers.latency_text(spread.median)}",
            spread.median / 1e3, name, spread.least / 1e3, spread.most / 1e3,
        )
        for row in comparison.rows
        for name, spread in row.summary.latency.get("all", {}).items()
        if spread.least > 0
    ]  # fmt: skip

    def draw(look: ChartLook) -> alt.LayerChart:
        y = level_y_axis("Latency", "ms", [end for point in points for end in (point.low, point.high) if end])
        return line_chart(points, list(PERCENTILES), y, comparison.colours, look, "Latency of transactions")

    return chart_of_marks("latency", "Latency of transactions", points, draw)


def patterns_figure(comparison: PlacementComparison) -> Chart | None:
    """Throughput of every pattern of a device benchmark with its interval, on a log scale."""
    rates = [(row, row.mb_per_s) for row in (comparison.benchmark.rows if comparison.benchmark else [])]
    dots = [
        dot_of_interval(row.title, row.placement, rate, numbers.significant_text, " MB/s")
        for row, rate in rates
    ]

    def draw(look: ChartLook) -> alt.LayerChart:
        ends = [end for _, rate in rates for end in (rate.estimate, rate.low, rate.high) if end]
        title = "MB/s (log scale)"
        return grouped_dot_chart(dots, log_x_axis(title, ends), comparison.colours, look, title)

    return chart_of_marks("patterns", "Throughput of each pattern", dots, draw)


_OF_COMPARISON = (
    lap_times_figure,
    normalised_figure,
    lap_ratios_figure,
    time_or_rate_figure,
    speedup_figure,
    waits_figure,
    device_busy_figure,
    role_bytes_figure,
    device_requests_figure,
    amplification_figure,
    latency_figure,
    paper_figure,
    execution_order_figure,
)
_CHIEF = frozenset({"patterns", "laps", "laps-speedup", "elapsed", "waits", "paper"})
"""Charts of each study on a page of many studies."""


def study_figures(comparison: PlacementComparison, chief_only: bool = False) -> dict[str, Chart]:
    """Name -> figure, for figures with data."""
    makers = (patterns_figure,) if comparison.benchmark else _OF_COMPARISON
    figures = _by_name(make(comparison) for make in makers)
    return {name: figure for name, figure in figures.items() if name in _CHIEF or not chief_only}


def sweep_figures(sweep_result: SweepResult, baseline: str) -> dict[str, Chart]:
    """Charts of whole runs over the setting, then of the ratios of each placement's laps."""
    placements = dict.fromkeys(line.placement for line in sweep_result.lines)
    ratios = (
        sweep_ratios_figure(sweep_result, name, number) for number, name in enumerate(placements, start=1)
    )
    return _by_name([sweep_levels_figure(sweep_result, baseline), *ratios])


def _by_name(figures: Iterable[Chart | None]) -> dict[str, Chart]:
    return {figure.name: figure for figure in figures if figure is not None}
