"""Two sets of results: speed-up of B over A, by run and by lap."""

from __future__ import annotations

from tierwise.model.extras import alt
from tierwise.report import numbers
from tierwise.report.charts.dots import dot, dot_chart
from tierwise.report.charts.figure import Figure, figure
from tierwise.report.charts.look import Look, ratio_x
from tierwise.report.comparison.sets import SetComparison

_MOST_ROWS = 60


def pairs_figure(found: SetComparison) -> Figure | None:
    """How many times faster B is than A; ``None`` if no time or rate has a counterpart in the other set."""
    speeds = {
        ", ".join(part for part in (name or "whole run", pair.label) if part): ratio
        for pair in found.pairs
        for name, ratio in pair.speeds.items()
    }
    shown = dict(list(speeds.items())[:_MOST_ROWS])
    dots = [dot(name, "", ratio, numbers.ratio, "×") for name, ratio in shown.items()]
    title = "How many times faster B is than A"

    def draw(look: Look) -> alt.LayerChart:
        x = ratio_x(title, list(shown.values()), look)
        return dot_chart(dots, x, {"": "place-1"}, look, "B against A", line=True)

    return figure("speed", title, dots, draw)
