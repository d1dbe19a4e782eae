"""The interval score, which rewards narrow and correct intervals. Of logarithms, so it reads as a share.

Gneiting and Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation", Journal of the American
Statistical Association 102(477), 2007: section 6.2.
"""

from __future__ import annotations

import math

from tierwise.predict import Estimate

_LEVEL = 0.95


def interval_score(predicted: Estimate, measured: float) -> float:
    """Width of the 95 % interval plus 40 times the distance of a measurement outside it; lower is better."""
    low, high, value = (math.log(end) for end in (predicted.low, predicted.high, measured))
    outside = max(low - value, 0.0) + max(value - high, 0.0)
    return high - low + 2 / (1 - _LEVEL) * outside
