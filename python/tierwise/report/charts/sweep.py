"""A swept setting: whole runs over its values, and each lap's ratio to the least, in Chang's form."""

from __future__ import annotations

from tierwise.model.extras import alt
from tierwise.model.statistics import Bound
from tierwise.report import numbers
from tierwise.report.charts.dots import dot, grouped_dot_chart
from tierwise.report.charts.figure import Figure, figure
from tierwise.report.charts.lines import LinePoint, line_chart
from tierwise.report.charts.look import Look, level_y, ratio_x
from tierwise.report.palette import placement_names
from tierwise.report.study.sweeps import SweepResult

_MOST_ROWS = 40


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
        y = level_y(title, unit, [end for one in points for end in (one.value, one.low, one.high) if end])
        over = f"Over {sweep.plain_name}"
        return line_chart(points, sweep.values, y, palette, look, over, x_title=sweep.plain_name)

    return figure("levels", f"Whole runs over {sweep.name}", points, draw)


def ratios_figure(sweep: SweepResult, placement: str, number: int) -> Figure | None:
    """Speed-up of each lap and each score over the least value, under one placement."""
    lines = [line for line in sweep.lines if line.placement == placement and (line.lap or line.score)]
    found = [
        (line.lap or line.score or "", point.value, point.ratio)
        for line in lines[:_MOST_ROWS]
        for point in line.points
        if point.ratio
    ]
    dots = [dot(name, value, ratio, numbers.ratio) for name, value, ratio in found]
    how = "better" if any(line.score for line in lines) else "faster"
    title = f"Times {how} than with {sweep.plain_name} {sweep.values[0]}, {placement}"

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, [ratio for _, _, ratio in found], look)
        return grouped_dot_chart(dots, x, placement_names(sweep.values[1:], ""), look, title, line=True)

    return figure(f"ratios-{number}", title, dots, draw)
