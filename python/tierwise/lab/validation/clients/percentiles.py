"""Percentiles of latencies, from samples or from a histogram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

_NAMES = {"p50_us": 0.5, "p95_us": 0.95, "p99_us": 0.99}


def of_samples(values_us: Sequence[float]) -> dict[str, float]:
    """Percentiles of single latencies; empty without values."""
    return of_histogram(Counter(values_us))


def of_histogram(counts: Mapping[float, int]) -> dict[str, float]:
    """Percentiles of latencies in µs, each with its count."""
    total = sum(counts.values())
    if not total:
        return {}
    percentiles: dict[str, float] = {}
    seen = 0
    rising = iter(sorted(counts.items()))
    value = 0.0
    for name, share in _NAMES.items():
        while seen < share * total:
            value, count = next(rising)
            seen += count
        percentiles[name] = value
    return percentiles
