"""Placements, laps, swept settings, or two sets of results, compared; figures in page order."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tierwise.lab.analysis.answer import Comparison
from tierwise.lab.analysis.laps import LapCell, chief_laps
from tierwise.lab.analysis.sets import SetComparison
from tierwise.lab.analysis.summary import WAIT_CLASSES
from tierwise.lab.analysis.sweeps import SweepResult
from tierwise.lab.report.charts import checks
from tierwise.lab.report.charts.checks import (
    amplification_figure,
    busy_figure,
    bytes_figure,
    latency_figure,
    patterns_figure,
    requests_figure,
)
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.statistics import Bound
from tierwise.report.charts.builders import (
    Bar,
    LinePoint,
    Slice,
    bar_chart,
    dot,
    dot_chart,
    grouped_dot_chart,
    line_chart,
    one_after_the_other,
    stacked_chart,
)
from tierwise.report.charts.look import (
    Figure,
    Look,
    figure,
    group_colour,
    level_y,
    log_x,
    percent_x,
    plot,
    ratio_x,
    rows,
    zero_x,
)
from tierwise.report.palette import placement_names
from tierwise.results import WaitClass

_MOST_NORMALISED = 12


def lap_times_figure(comparison: Comparison) -> Figure | None:
    """Median time of every lap with its interval, on a log scale; capped laps are hollow."""
    timed = [
        (lap, cell, cell.elapsed)
        for lap in chief_laps(comparison.laps)
        for cell in lap.cells
        if cell.elapsed and cell.elapsed.estimate > 0
    ]
    ends = [end for _, _, time in timed for end in (time.estimate, time.low, time.high) if end]
    if not ends:
        return None
    x = log_x("Time of each lap (s, log scale)", [*ends, 0.8 * min(ends)])
    bars = [
        Bar(
            lap.label, cell.placement, _text(cell, numbers.seconds(time.estimate)), time.estimate,
            start=x["scale"]["domain"][0], low=time.low, high=None if cell.stopped else time.high,
            hollow=cell.stopped,
        )
        for lap, cell, time in timed
    ]  # fmt: skip

    def draw(look: Look) -> alt.LayerChart:
        return bar_chart(bars, x, comparison.colours, look, "Time of each lap (s, log scale)")

    return figure("laps", "Median time of each lap", bars, draw)


def normalised_figure(comparison: Comparison) -> Figure | None:
    """Time of every lap in percent of its slowest placement: less is better."""
    laps = chief_laps(comparison.laps)
    if len(laps) > _MOST_NORMALISED or len(comparison.rows) < 2:
        return None
    bars = [
        Bar(lap.label, cell.placement, _text(cell, numbers.percent(share)), 100 * share, hollow=cell.stopped)
        for lap in laps
        for cell in lap.cells
        if cell.elapsed and lap.slowest_s and (share := cell.elapsed.estimate / lap.slowest_s)
    ]
    title = "Time of each lap (% of the slowest placement)"

    def draw(look: Look) -> alt.LayerChart:
        return bar_chart(bars, percent_x(title), comparison.colours, look, title)

    return figure("laps-normalised", title, bars, draw)


def lap_ratios_figure(comparison: Comparison) -> Figure | None:
    """Speed-up of each lap over the baseline, with its interval; a triangle marks a bound."""
    points = [
        (lap.label, cell.placement, cell.speedup)
        for lap in chief_laps(comparison.laps)
        for cell in lap.cells
        if cell.speedup
    ]
    dots = [dot(lap, placement, ratio, numbers.ratio) for lap, placement, ratio in points]
    palette = {name: comparison.colours[name] for name in comparison.colours if name != comparison.baseline}
    title = f"Times faster than {comparison.baseline}"

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, [ratio for _, _, ratio in points], look)
        return grouped_dot_chart(dots, x, palette, look, title, line=True)

    return figure("laps-speedup", f"{title}, by lap", dots, draw)


def _text(cell: LapCell, figure: str) -> str:
    return f"≥ {figure}, capped" if cell.stopped else figure


_MOST_LINES = 40


def levels_figure(sweep: SweepResult, baseline: str) -> Figure | None:
    """Whole runs over the swept values, one line per placement; points slower with more are marked."""
    lines = [line for line in sweep.lines if line.lap is None and line.score is None]
    points = [
        LinePoint(
            line.placement, line.placement,
            f"{point.value} {numbers.signed(level, numbers.significant(level.estimate))}",
            level.estimate, point.value, level.low, level.high if level.bound is Bound.EXACT else None,
            point.slower_than is not None,
        )
        for line in lines
        for point in line.points
        if (level := point.level)
    ]  # fmt: skip
    palette = placement_names([line.placement for line in lines], baseline)
    title, unit = ("Elapsed time", "s") if lines and lines[0].is_time else ("Transactions a second", "")

    def draw(look: Look) -> alt.LayerChart:
        y = level_y(
            title, unit, [end for point in points for end in (point.value, point.low, point.high) if end]
        )
        over = f"Over {sweep.plain_name}"
        return line_chart(points, sweep.values, y, palette, look, over, x_title=sweep.plain_name)

    return figure("levels", f"Whole runs over {sweep.name}", points, draw)


def ratios_figure(sweep: SweepResult, placement: str, number: int) -> Figure | None:
    """Speed-up of each lap and each score over the least value, under one placement."""
    lines = [line for line in sweep.lines if line.placement == placement and (line.lap or line.score)]
    points = [
        (line.lap or line.score or "", point.value, point.ratio)
        for line in lines[:_MOST_LINES]
        for point in line.points
        if point.ratio
    ]
    dots = [dot(name, value, ratio, numbers.ratio) for name, value, ratio in points]
    how = "better" if any(line.score for line in lines) else "faster"
    title = f"Times {how} than with {sweep.plain_name} {sweep.values[0]}, {placement}"

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, [ratio for _, _, ratio in points], look)
        return grouped_dot_chart(dots, x, placement_names(sweep.values[1:], ""), look, title, line=True)

    return figure(f"ratios-{number}", title, dots, draw)


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


def level_figure(comparison: Comparison) -> Figure | None:
    """Elapsed time, or rate, of every placement: each run, the median and its interval."""
    by_rate = comparison.measure == "rate"
    title, unit = ("Transactions a second", "/s") if by_rate else ("Elapsed time (s)", " s")
    dots = [
        dot(row.placement, row.placement, level, numbers.significant, unit)
        for row in comparison.rows
        if (level := row.summary.rate if by_rate else row.summary.elapsed) is not None
    ]

    def draw(look: Look) -> alt.LayerChart:
        x = zero_x(title, look)
        runs = [
            {"row": name, "group": name, "value": value}
            for name, points in comparison.validity.points.items()
            for point in points
            if point.status == "ok" and (value := point.rate_per_s if by_rate else point.elapsed_s)
        ]
        cloud = plot(runs).mark_point(filled=True, size=34, opacity=0.4, yOffset=13)
        cloud = cloud.encode(
            y=rows([dot.row for dot in dots], look, two_lines=True),
            x=x,
            color=group_colour(comparison.colours, look, shown=False),
        )
        return dot_chart(dots, x, comparison.colours, look, title, below=[cloud] if runs else [])

    return figure("elapsed", f"{title}, median with 95 % interval", dots, draw)


def speedup_figure(comparison: Comparison) -> Figure | None:
    """Ratio to the baseline, on a log scale, with a line at 1."""
    title = comparison.ratio_title
    speedups = {row.placement: row.speedup for row in comparison.rows if row.speedup is not None}
    dots = [dot(name, name, ratio, numbers.ratio, "×") for name, ratio in speedups.items()]

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, list(speedups.values()), look)
        return dot_chart(dots, x, comparison.colours, look, title, line=True)

    return figure("speedup", f"{title}, with 95 % interval", dots, draw)


def waits_figure(comparison: Comparison) -> Figure | None:
    """Shares of session time, in percent, mean over the valid runs."""
    palette = {WAIT_NAMES[kind]: f"wait-{kind}" for kind in WAIT_CLASSES}

    def slices(least_labelled: float) -> list[Slice]:
        shares = [
            (
                row.placement,
                [
                    (WAIT_NAMES[kind], 100 * wait, numbers.percent(wait))
                    for kind, wait in row.summary.waits.items()
                ],
            )
            for row in comparison.rows
        ]
        return [
            bar_slice
            for name, parts in shares
            for bar_slice in one_after_the_other(name, parts, least_labelled)
        ]

    def draw(look: Look) -> alt.LayerChart:
        x = percent_x("Share of session time (%)")
        return stacked_chart(slices(12 if look.narrow else 4.5), x, palette, look, "Where session time went")

    return figure("waits", "Share of session time", slices(math.inf), draw)


_MOST_ROWS = 60


def pairs_figure(comparison: SetComparison) -> Figure | None:
    """How many times faster B is than A; ``None`` if no time or rate has a counterpart in the other set."""
    speeds = {
        ", ".join(part for part in (name or "whole run", pair.label) if part): ratio
        for pair in comparison.pairs
        for name, ratio in pair.speeds.items()
    }
    shown = dict(list(speeds.items())[:_MOST_ROWS])
    dots = [dot(name, "", ratio, numbers.ratio, "×") for name, ratio in shown.items()]
    title = "How many times faster B is than A"

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, list(shown.values()), look)
        return dot_chart(dots, x, {"": "place-1"}, look, "B against A", line=True)

    return figure("speed", title, dots, draw)


_OF_COMPARISON = (
    lap_times_figure,
    normalised_figure,
    lap_ratios_figure,
    level_figure,
    speedup_figure,
    waits_figure,
    busy_figure,
    bytes_figure,
    requests_figure,
    amplification_figure,
    latency_figure,
    checks.paper_figure,
    checks.order_figure,
)
_CHIEF = frozenset({"patterns", "laps", "laps-speedup", "elapsed", "waits", "paper"})
"""Charts of each study on a page of many studies."""


def figures_of(comparison: Comparison, chief_only: bool = False) -> dict[str, Figure]:
    """Name -> figure, for figures with data."""
    makers = (patterns_figure,) if comparison.benchmark else _OF_COMPARISON
    figures = _by_name(make(comparison) for make in makers)
    return {name: figure for name, figure in figures.items() if name in _CHIEF or not chief_only}


def figures_of_sweep(sweep_result: SweepResult, baseline: str) -> dict[str, Figure]:
    """Charts of whole runs over the setting, then of the ratios of each placement's laps."""
    placements = dict.fromkeys(line.placement for line in sweep_result.lines)
    ratios = (ratios_figure(sweep_result, name, number) for number, name in enumerate(placements, start=1))
    return _by_name([levels_figure(sweep_result, baseline), *ratios])


def _by_name(figures: Iterable[Figure | None]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures if figure is not None}
