"""Placements compared: the level of each, its ratio to the baseline, where session time went."""

from __future__ import annotations

import math

from tierwise.model.extras import alt
from tierwise.report import numbers
from tierwise.report.charts.bars import Slice, one_after_the_other, stacked_chart
from tierwise.report.charts.dots import dot, dot_chart
from tierwise.report.charts.figure import Figure, figure
from tierwise.report.charts.look import Look, group_colour, percent_x, plot, ratio_x, rows, zero_x
from tierwise.report.study.answer import Comparison
from tierwise.report.study.summary import WAIT_CLASSES
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
            y=rows([one.row for one in dots], look, two_lines=True),
            x=x,
            color=group_colour(comparison.colours, look, shown=False),
        )
        return dot_chart(dots, x, comparison.colours, look, title, below=[cloud] if runs else [])

    return figure("elapsed", f"{title}, median with 95 % interval", dots, draw)


def speedup_figure(comparison: Comparison) -> Figure | None:
    """Ratio to the baseline, on a log scale, with a line at 1."""
    title = comparison.ratio_title
    found = {row.placement: row.speedup for row in comparison.rows if row.speedup is not None}
    dots = [dot(name, name, ratio, numbers.ratio, "×") for name, ratio in found.items()]

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, list(found.values()), look)
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
                    (WAIT_NAMES[kind], 100 * one, numbers.percent(one))
                    for kind, one in row.summary.waits.items()
                ],
            )
            for row in comparison.rows
        ]
        return [one for name, parts in shares for one in one_after_the_other(name, parts, least_labelled)]

    def draw(look: Look) -> alt.LayerChart:
        x = percent_x("Share of session time (%)")
        return stacked_chart(slices(12 if look.narrow else 4.5), x, palette, look, "Where session time went")

    return figure("waits", "Share of session time", slices(math.inf), draw)
