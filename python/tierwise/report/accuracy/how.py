"""Text of docs/evidence/accuracy.md that explains its figures."""

from __future__ import annotations

from tierwise.predict.answer import MOST_SPAN
from tierwise.report.numbers import percent
from tierwise.validation.accuracy import (
    CONTROL_BAR,
    COVERAGE_BAR,
    GOOD,
    LEAST_APART,
    MEDIAN_BAR,
    MOST_APART,
    NINETIETH_BAR,
    ORDER_BAR,
    REGRET_BAR,
    REGRET_SHARE_BAR,
    WIDTH_BAR,
    WORST_BAR,
    WRONG,
)

HOW = f"""\
Written by `tierwise validate`; [validation.md](validation.md) has the protocol. All placements of a case
are up at once. The client runs against one at a time for some seconds (a slot), in random order within
blocks. A recording is a slot too, with slots that are not recorded before and after it.

- **Measured** is the rate beside the recording, times the ratio of the two placements within the same
  blocks. Its 95 % interval is that of the ratio.
- **Error** is the predicted over the measured rate, less 1: above 0, the prediction is too fast. **Bias**
  is the median error with its sign.
- **Reach**: how far above the prediction the 95 % interval reaches, in the median. It contains the errors
  calibrated from all *other* families of clients, never from its own. **Holds**: share of the predictions
  whose interval contains the measurement. **Score** is the mean interval score (width, and 40 times the
  distance of what lies outside, of the logarithm); lower is better.
- **In order**: share of the pairs of placements predicted from one recording, whose measured rates differ
  by {LEAST_APART:g} to {MOST_APART:g} times, that are predicted in the measured order.
- **Bounds**: how many of the stated upper bounds the measurement exceeds.
- **The recorded placement** is a control: predicted, and compared with the slots beside the recording.
- **Regret**: how much faster the best measured placement is than the advised one, among those that cost no
  more.
- **What is stated**: a figure with its interval; a range alone, where the ends of the interval differ by
  more than a factor of {MOST_SPAN:g}; or that the recording is not usable. A prediction is good if it errs
  by less than {percent(GOOD)}, and wrong if it errs by more than {percent(WRONG)}.

| bar | |
| --- | --- |
| error of the recorded placement, median | {percent(CONTROL_BAR)} |
| error of other placements, median | {percent(MEDIAN_BAR)} |
| the same at the 90th percentile, and at worst | {percent(NINETIETH_BAR)}, {percent(WORST_BAR)} |
| intervals that hold | {percent(COVERAGE_BAR)} |
| reach of intervals, median | +{percent(WIDTH_BAR)} |
| pairs in order | {percent(ORDER_BAR)} |
| bounds exceeded | none |
| decisions with a regret within {percent(REGRET_BAR)} | {percent(REGRET_SHARE_BAR)} |
"""
