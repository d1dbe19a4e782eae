"""Scores of intervals, which reward narrow and correct ones. Both use the logarithm, so they read as shares.

Gneiting and Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation", Journal of the American
Statistical Association 102(477), 2007: section 6.2 (interval score), equation 21 (CRPS of a normal forecast).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from tierwise.predict import Estimate

_LEVEL = 0.95
_NORMAL = NormalDist()
_TO_SIGMA = _NORMAL.inv_cdf((1 + _LEVEL) / 2)
_LEAST_SIGMA = 1e-6


def interval_score(predicted: Estimate, measured: float) -> float:
    """Width of the 95 % interval plus 40 times the distance of a measurement outside it; lower is better."""
    low, high, value = (math.log(one) for one in (predicted.low, predicted.high, measured))
    outside = max(low - value, 0.0) + max(value - high, 0.0)
    return high - low + 2 / (1 - _LEVEL) * outside


def crps(predicted: Estimate, measured: float) -> float:
    """Continuous ranked probability score of a lognormal forecast; lower is better.

    The forecast's median is the prediction; its 95 % interval is as wide as the prediction's.
    """
    sigma = max(math.log(predicted.high / predicted.low) / 2 / _TO_SIGMA, _LEAST_SIGMA)
    z = math.log(measured / predicted.value) / sigma
    return sigma * (z * (2 * _NORMAL.cdf(z) - 1) + 2 * _NORMAL.pdf(z) - 1 / math.sqrt(math.pi))
