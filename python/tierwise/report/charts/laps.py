"""Charts of laps in the papers' forms: times on a log scale, times normalised to 100 %, speed-up ratios."""

from __future__ import annotations

from tierwise.model.extras import alt
from tierwise.report import numbers
from tierwise.report.charts.bars import Bar, bar_chart
from tierwise.report.charts.dots import dot, grouped_dot_chart
from tierwise.report.charts.figure import Figure, figure
from tierwise.report.charts.look import Look, log_x, percent_x, ratio_x
from tierwise.report.study.answer import Comparison
from tierwise.report.study.laps import LapCell, chief_laps

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
    found = [
        (lap.label, cell.placement, cell.speedup)
        for lap in chief_laps(comparison.laps)
        for cell in lap.cells
        if cell.speedup
    ]
    dots = [dot(lap, placement, ratio, numbers.ratio) for lap, placement, ratio in found]
    palette = {name: comparison.colours[name] for name in comparison.colours if name != comparison.baseline}
    title = f"Times faster than {comparison.baseline}"

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, [ratio for _, _, ratio in found], look)
        return grouped_dot_chart(dots, x, palette, look, title, line=True)

    return figure("laps-speedup", f"{title}, by lap", dots, draw)


def _text(cell: LapCell, figure: str) -> str:
    return f"≥ {figure}, capped" if cell.stopped else figure
