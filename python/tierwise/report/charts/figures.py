"""The figures of a comparison or of a sweep, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterable

from tierwise.report.charts import checks, comparison, devices, laps, sweep
from tierwise.report.charts.figure import Figure
from tierwise.report.study.answer import Comparison
from tierwise.report.study.sweeps import SweepResult

_OF_COMPARISON = (
    laps.lap_times_figure,
    laps.normalised_figure,
    laps.lap_ratios_figure,
    comparison.level_figure,
    comparison.speedup_figure,
    comparison.waits_figure,
    devices.busy_figure,
    devices.bytes_figure,
    devices.requests_figure,
    devices.amplification_figure,
    devices.latency_figure,
    checks.paper_figure,
    checks.order_figure,
)
_CHIEF = frozenset({"patterns", "laps", "laps-speedup", "elapsed", "waits", "paper"})
"""Charts of each study on a page of many studies."""


def figures_of(found: Comparison, chief_only: bool = False) -> dict[str, Figure]:
    """Name -> figure, for figures with data."""
    makers = (devices.patterns_figure,) if found.benchmark else _OF_COMPARISON
    figures = _by_name(make(found) for make in makers)
    return {name: one for name, one in figures.items() if name in _CHIEF or not chief_only}


def figures_of_sweep(found: SweepResult, baseline: str) -> dict[str, Figure]:
    """Charts of whole runs over the setting, then of the ratios of each placement's laps."""
    placements = dict.fromkeys(line.placement for line in found.lines)
    ratios = (sweep.ratios_figure(found, name, number) for number, name in enumerate(placements, start=1))
    return _by_name([sweep.levels_figure(found, baseline), *ratios])


def _by_name(figures: Iterable[Figure | None]) -> dict[str, Figure]:
    return {one.name: one for one in figures if one is not None}
