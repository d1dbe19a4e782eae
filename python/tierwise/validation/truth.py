"""Measured figures per case and placement, adjusted to one state of the machine, and their spread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tierwise.model.extras import np
from tierwise.results.measurements import Record
from tierwise.validation.rows import Row

_FEWEST_FREE = 20
"""Minimum number of runs, beyond one per case and placement, for estimating a coefficient."""
MEDIAN_SPREAD_BAR, NINETIETH_SPREAD_BAR = 0.02, 0.06

Key = tuple[str, str]
"""Case and placement."""


class Spread(Record):
    """Standard deviation of the runs of one case and placement, over their mean: over all of these."""

    groups: int
    median: float
    ninetieth: float

    @property
    def passed(self) -> bool:
        """Whether both bars are kept."""
        return self.median <= MEDIAN_SPREAD_BAR and self.ninetieth <= NINETIETH_SPREAD_BAR


@dataclass(frozen=True)
class Truth:
    """Measured figures by case and placement: seconds of laps, transactions a second of a mix."""

    figures: dict[Key, list[float]]
    rows: dict[Key, list[Row]]
    coefficient: float
    """Slope of the logarithm of a rate over that of the control workload's CPU rate."""
    raw: Spread | None
    adjusted: Spread | None


def truth_of(rows: Sequence[Row]) -> Truth:
    """Group the measured runs that count, with the control workload's processor rate as control variate.

    The coefficient is that of least squares within cases and placements (Lavenberg and Welch, "A Perspective
    on the Use of Control Variables to Increase the Efficiency of Monte Carlo Simulations", Management
    Science 27(3), 1981). Each rate is adjusted to the mean of the control workload.
    """
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        if row.kind == "measured" and row.status == "ok" and row.figure:
            groups.setdefault((row.case, row.placement), []).append(row)
    raw = {key: [row.figure or 0.0 for row in own] for key, own in groups.items()}
    slope = _coefficient(groups)
    middle = fmean(map(_control, (row for own in groups.values() for row in own))) if groups else 0.0
    adjusted = {
        key: [_adjusted(row, slope * (_control(row) - middle)) for row in own] for key, own in groups.items()
    }
    return Truth(adjusted, groups, slope, spread_of(raw.values()), spread_of(adjusted.values()))


def spread_of(samples: Iterable[Sequence[float]]) -> Spread | None:
    """Relative standard deviations of samples of two or more; ``None`` without any."""
    each = [float(np.std(np.log(one), ddof=1)) for one in samples if len(one) > 1]
    if not each:
        return None
    return Spread(groups=len(each), median=float(np.median(each)), ninetieth=float(np.quantile(each, 0.9)))


def _coefficient(groups: dict[Key, list[Row]]) -> float:
    """Slope of the logarithm of rates over the control's, within groups; 0 with too few runs."""
    controls, rates = [], []
    for own in groups.values():
        x, y = [_control(row) for row in own], [_log_rate(row) for row in own]
        controls += [one - fmean(x) for one in x]
        rates += [one - fmean(y) for one in y]
    if len(rates) - len(groups) < _FEWEST_FREE:
        return 0.0
    square = sum(one * one for one in controls)
    return sum(x * y for x, y in zip(controls, rates, strict=True)) / square if square > 0 else 0.0


def _control(row: Row) -> float:
    """Logarithm of the control's rate around a run."""
    return math.log(fmean(one.cpu_per_s for one in row.control)) if row.control else 0.0


def _log_rate(row: Row) -> float:
    figure = math.log(row.figure or 1.0)
    return -figure if row.laps else figure


def _adjusted(row: Row, shift: float) -> float:
    rate = _log_rate(row) - shift
    return math.exp(-rate if row.laps else rate)
