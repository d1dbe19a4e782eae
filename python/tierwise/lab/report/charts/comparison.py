"""Placements, or two sets of results, compared: levels, ratios, session time; figures in page order."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tierwise.lab.analysis.answer import Comparison
from tierwise.lab.analysis.sets import SetComparison
from tierwise.lab.analysis.summary import WAIT_CLASSES
from tierwise.lab.analysis.sweeps import SweepResult
from tierwise.lab.report.charts import checks, laps
from tierwise.lab.report.charts.checks import (
    amplification_figure,
    busy_figure,
    bytes_figure,
    latency_figure,
    patterns_figure,
    requests_figure,
)
from tierwise.lab.report.charts.laps import levels_figure, ratios_figure
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.report.charts.builders import Slice, dot, dot_chart, one_after_the_other, stacked_chart
from tierwise.report.charts.look import (
    Figure,
    Look,
    figure,
    group_colour,
    percent_x,
    plot,
    ratio_x,
    rows,
    zero_x,
)
from tierwise.results import WaitClass

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
    laps.lap_times_figure,
    laps.normalised_figure,
    laps.lap_ratios_figure,
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
