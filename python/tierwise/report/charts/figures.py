"""The figures of a comparison, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import altair as alt

from tierwise.report.answer import Comparison
from tierwise.report.charts.benchmark import described_patterns, patterns_chart
from tierwise.report.charts.checks import described_order, described_paper, order_chart, paper_chart
from tierwise.report.charts.comparison import (
    described_level,
    described_speedup,
    level_chart,
    speedup_chart,
)
from tierwise.report.charts.devices import busy_chart, described_busy, described_latency, latency_chart
from tierwise.report.charts.look import Look
from tierwise.report.charts.waits import described_waits, waits_chart

Draw = Callable[[Comparison, Look], alt.LayerChart | None]


@dataclass(frozen=True)
class Figure:
    """One chart that has something to show."""

    name: str
    description: str
    comparison: Comparison
    _draw: Draw

    def draw(self, look: Look) -> alt.LayerChart:
        """The chart in a look."""
        chart = self._draw(self.comparison, look)
        if chart is None:
            raise ValueError(f"figure {self.name} has nothing to show")
        return chart


_BENCHMARK: dict[str, tuple[Draw, Callable[[Comparison], str]]] = {
    "patterns": (patterns_chart, described_patterns),
}
_FIGURES: dict[str, tuple[Draw, Callable[[Comparison], str]]] = {
    "elapsed": (level_chart, lambda comparison: described_level(comparison.rows)),
    "speedup": (speedup_chart, lambda comparison: described_speedup(comparison.rows)),
    "waits": (waits_chart, described_waits),
    "io": (busy_chart, described_busy),
    "latency": (latency_chart, described_latency),
    "paper": (paper_chart, described_paper),
    "order": (order_chart, described_order),
}


def figures_of(comparison: Comparison) -> dict[str, Figure]:
    """Name -> figure, of those that the results can fill."""
    found = {}
    figures = _BENCHMARK if comparison.benchmark else _FIGURES
    for name, (draw, describe) in figures.items():
        if draw(comparison, _PROBE) is not None:
            found[name] = Figure(name, describe(comparison), comparison, draw)
    return found


_PROBE = Look(760, str)
