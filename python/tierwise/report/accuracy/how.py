"""Text of docs/evidence/accuracy.md that explains its figures."""

from __future__ import annotations

from tierwise.validation.accuracy import (
    ANSWERED_BAR,
    COVERAGE_BAR,
    LEAST_APART,
    MEDIAN_BAR,
    MOST_APART,
    NINETIETH_BAR,
    ORDER_BAR,
    WIDTH_BAR,
    WORST_BAR,
)
from tierwise.validation.truth import MEDIAN_SPREAD_BAR, NINETIETH_SPREAD_BAR

HOW = f"""\
Written by `tierwise validate`; [validation.md](validation.md) has the protocol. Each case was recorded in
every block under the placements below, and predicted from each recording alone for the other placements and
for the recorded one itself. Every case and placement was measured without recording in every block, in
random order.

- An error is predicted over measured, less 1: of the time of all laps, or of the rate of a mix. Measured is
  the median of the runs. **Bias** is the median error of the rate with its sign: above 0, predictions are
  too fast.
- **Interval**: how far above the prediction the 95 % interval reaches, in the median. It contains the errors
  calibrated from all *other* families of clients, never from its own. **Covered**: share of the predictions
  whose interval contains the measurement.
- **Score** and **CRPS** judge interval and error together, on the logarithm; lower is better. Score is the
  mean interval score (width, and 40 times the distance of what lies outside); CRPS is that of a lognormal
  forecast.
- **In order**: share of the pairs of placements predicted from one recording, whose measured figures differ
  by {LEAST_APART:g} to {MOST_APART:g} times, that are predicted in the measured order.
- **The recorded placement** is a control: it needs no other device, so its error is that of the replay.

Bars: median error {MEDIAN_BAR:.0%}, 90th percentile {NINETIETH_BAR:.0%}, worst {WORST_BAR:.0%}, answered
{ANSWERED_BAR:.0%}, covered {COVERAGE_BAR:.0%} with intervals up to +{WIDTH_BAR:.0%} in the median, in order
{ORDER_BAR:.0%}; for the truth a standard deviation of {MEDIAN_SPREAD_BAR:.0%} in the median and
{NINETIETH_SPREAD_BAR:.0%} at the 90th percentile.
"""
