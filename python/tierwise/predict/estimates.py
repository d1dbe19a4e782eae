"""Estimates from the figures of several seeds, with an interval.

Intervals are on the logarithm, since errors of predictions are factors. The interval of the mean over seeds
(Student) and the half widths of other errors are independent, so their squares add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from tierwise.model.statistics import mean_half_width
from tierwise.predict.prediction import Estimate


def estimate_from_seeds(values: Sequence[float], half_widths: Sequence[float] = ()) -> Estimate | None:
    """The geometric mean of a figure under several seeds, with its 95 % interval; ``None`` for figures of 0.

    Args:
        values: one for each seed, in any unit.
        half_widths: half widths of 95 % intervals of the logarithm, of independent further errors.
    """
    if not values or min(values) <= 0:
        return None
    logarithms = [math.log(value) for value in values]
    half = math.sqrt(mean_half_width(logarithms) ** 2 + sum(half_width**2 for half_width in half_widths))
    middle = fmean(logarithms)
    low, value, high = (math.exp(middle + way * half) for way in (-1, 0, 1))
    return Estimate(value=value, low=low, high=high)


def estimate_spanning_series(
    series: Sequence[Sequence[float]], half_widths: Sequence[float] = ()
) -> Estimate | None:
    """The estimate of the first of several series, with an interval that contains those of all.

    Args:
        series: for each assumption, a figure for each seed; the main assumption first.
    """
    uncertainty = [interval for values in series if (interval := estimate_from_seeds(values, half_widths))]
    if not uncertainty or len(uncertainty) < len(series):
        return None
    return Estimate(
        value=uncertainty[0].value,
        low=min(interval.low for interval in uncertainty),
        high=max(interval.high for interval in uncertainty),
    )


def estimate_capped_at(figure: Estimate | None, most: float) -> Estimate | None:
    """An estimate with its high end at most ``most``; a value above ``most`` is scaled down to it."""
    if figure is None or figure.high <= most:
        return figure
    factor = min(1.0, most / figure.value)
    return Estimate(value=figure.value * factor, low=figure.low * factor, high=most)


def estimate_ratio(
    above: Sequence[float], below: Sequence[float], half_widths: Sequence[float] = ()
) -> Estimate | None:
    """A ratio, seed by seed, as :func:`estimate_from_seeds`."""
    if not below or min(below) <= 0:
        return None
    return estimate_from_seeds([high / low for high, low in zip(above, below, strict=True)], half_widths)


def inverse_estimate(figure: Estimate, of: float = 1.0) -> Estimate:
    """``of`` divided by a figure."""
    return Estimate(value=of / figure.value, low=of / figure.high, high=of / figure.low)


def half_width(figure: Estimate) -> float:
    """Half the width of an estimate's interval, on the logarithm."""
    return math.log(figure.high / figure.low) / 2
