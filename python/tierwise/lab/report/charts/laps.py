"""Laps in the papers' forms (times on a log scale, normalised, speed-up ratios), and swept settings."""

from __future__ import annotations

from tierwise.lab.analysis.answer import Comparison
from tierwise.lab.analysis.laps import LapCell, chief_laps
from tierwise.lab.analysis.sweeps import SweepResult
from tierwise.model import numbers
from tierwise.model.extras import alt
from tierwise.model.statistics import Bound
from tierwise.report.charts.builders import Bar, LinePoint, bar_chart, dot, grouped_dot_chart, line_chart
from tierwise.report.charts.look import Figure, Look, figure, level_y, log_x, percent_x, ratio_x
from tierwise.report.palette import placement_names

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
        for line in lines[:_MOST_ROWS]
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
