"""The figures of a comparison or of a sweep, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import altair as alt

from tierwise.report.charts.benchmark import described_patterns, patterns_chart
from tierwise.report.charts.checks import described_order, described_paper, order_chart, paper_chart
from tierwise.report.charts.comparison import (
    described_level,
    described_speedup,
    level_chart,
    speedup_chart,
)
from tierwise.report.charts.devices import busy_chart, described_busy, described_latency, latency_chart
from tierwise.report.charts.laps import (
    described_lap_ratios,
    described_lap_times,
    described_normalised,
    lap_ratios_chart,
    lap_times_chart,
    normalised_chart,
)
from tierwise.report.charts.look import Look
from tierwise.report.charts.sweep import described_levels, described_ratios, levels_chart, ratios_chart
from tierwise.report.charts.volume import (
    amplification_chart,
    bytes_chart,
    described_amplification,
    described_bytes,
    described_requests,
    requests_chart,
)
from tierwise.report.charts.waits import described_waits, waits_chart
from tierwise.report.study.answer import Comparison
from tierwise.report.study.sweeps import SweepResult

Draw = Callable[[Comparison, Look], alt.LayerChart | None]
Describe = Callable[[Comparison], str]


@dataclass(frozen=True)
class Figure:
    """One chart with data."""

    name: str
    description: str
    _draw: Callable[[Look], alt.LayerChart | None]

    def draw(self, look: Look) -> alt.LayerChart:
        """The chart in a look."""
        chart = self._draw(look)
        if chart is None:
            raise ValueError(f"figure {self.name} has nothing to show")
        return chart

    @property
    def has_something(self) -> bool:
        """Whether the results have data for it."""
        return self._draw(_PROBE) is not None


_BENCHMARK: dict[str, tuple[Draw, Describe]] = {"patterns": (patterns_chart, described_patterns)}
_LAPS: dict[str, tuple[Draw, Describe]] = {
    "laps": (lap_times_chart, described_lap_times),
    "laps-normalised": (normalised_chart, described_normalised),
    "laps-speedup": (lap_ratios_chart, described_lap_ratios),
}
_FIGURES: dict[str, tuple[Draw, Describe]] = {
    "elapsed": (level_chart, lambda comparison: described_level(comparison.rows)),
    "speedup": (speedup_chart, lambda comparison: described_speedup(comparison.rows)),
    "waits": (waits_chart, described_waits),
    "io": (busy_chart, described_busy),
    "bytes": (bytes_chart, described_bytes),
    "requests": (requests_chart, described_requests),
    "amplification": (amplification_chart, described_amplification),
    "latency": (latency_chart, described_latency),
    "paper": (paper_chart, described_paper),
    "order": (order_chart, described_order),
}
_CHIEF = frozenset({"patterns", "laps", "laps-speedup", "elapsed", "waits", "paper"})
"""Charts of each study on a page of many studies."""


def figures_of(comparison: Comparison, chief_only: bool = False) -> dict[str, Figure]:
    """Name -> figure, for figures with data."""
    figures = _BENCHMARK if comparison.benchmark else _LAPS | _FIGURES
    return {
        name: Figure(name, describe(comparison), lambda look, draw=draw: draw(comparison, look))  # type: ignore[misc]
        for name, (draw, describe) in figures.items()
        if (name in _CHIEF or not chief_only) and draw(comparison, _PROBE) is not None
    }


def figures_of_sweep(sweep: SweepResult, baseline: str) -> dict[str, Figure]:
    """Charts of whole runs over the setting, then of the ratios of each placement's laps."""
    figures = [Figure("levels", described_levels(sweep), lambda look: levels_chart(sweep, baseline, look))]
    for number, placement in enumerate(dict.fromkeys(line.placement for line in sweep.lines), start=1):
        figures.append(
            Figure(
                f"ratios-{number}",
                described_ratios(sweep, placement),
                lambda look, placement=placement: ratios_chart(sweep, placement, look),  # type: ignore[misc]
            )
        )
    return {figure.name: figure for figure in figures if figure.has_something}


_PROBE = Look(760, str)
