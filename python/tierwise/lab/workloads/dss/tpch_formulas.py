"""Power, throughput and their composite, by the formulas of the TPC-H specification, clauses 5.3.7 and 5.4.

The results are derived from TPC-H and not comparable to published TPC results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from tierwise.lab.workloads.dss.query_parameters import QUERIES
from tierwise.lab.workloads.dss.query_sequence import power_laps, throughput_streams
from tierwise.results import LapResult

_SHORTEST_S = 0.1
_COUNTS_AS_SHORTEST_S = 0.05
_LONGEST_TO_SHORTEST = 1000


def dss_metrics(score: Mapping[str, float], laps: Iterable[LapResult]) -> dict[str, float]:
    """The metrics of a run; absent if one of their laps was capped, failed or not run.

    Args:
        score: ``scale_factor`` of the tables, and ``streams`` of the throughput sequence.

    Returns:
        ``power``, ``throughput`` and ``composite``, in queries an hour times the scale factor, to one
        decimal; and each as ``..._unrounded``, from the measured times: at small scale factors the
        specification's rounding to 0.1 s hides differences.
    """
    ended = {lap.name: lap for lap in laps if lap.status == "ok"}
    by_rule = _scores(ended, rounded_interval, score)
    unrounded = _scores(ended, float, score)
    return {name: round(value, 1) for name, value in by_rule.items()} | {
        f"{name}_unrounded": value for name, value in unrounded.items()
    }


def rounded_interval(interval_s: float) -> float:
    """A timing interval to the nearest 0.1 s, one below 0.05 s up to 0.1 s (clause 5.3.7.5)."""
    return _SHORTEST_S if interval_s < _COUNTS_AS_SHORTEST_S else math.floor(interval_s * 10 + 0.5) / 10


def power_at_size(queries_s: list[float], refreshes_s: list[float], scale_factor: float) -> float:
    """Power@Size: 3600 × scale factor / geometric mean of the 24 intervals (clause 5.4.1).

    Args:
        queries_s: intervals of the 22 queries; those shorter than a thousandth of the longest count as that
            thousandth (clause 5.4.1.4).
    """
    least = max(queries_s) / _LONGEST_TO_SHORTEST
    intervals = [max(interval, least) for interval in queries_s] + refreshes_s
    mean = math.exp(sum(math.log(interval) for interval in intervals) / len(intervals))
    return 3600 * scale_factor / mean


def throughput_at_size(streams: int, interval_s: float, scale_factor: float) -> float:
    """Throughput@Size: streams × 22 × 3600 / the interval of all streams × scale factor (clause 5.4.2)."""
    return streams * len(QUERIES) * 3600 / interval_s * scale_factor


def composite_at_size(power: float, throughput: float) -> float:
    """QphH@Size: the geometric mean of power and throughput (clause 5.4.3)."""
    return math.sqrt(power * throughput)


def _scores(
    ended: Mapping[str, LapResult], interval: Callable[[float], float], score: Mapping[str, float]
) -> dict[str, float]:
    result = {}
    scale_factor, streams = score["scale_factor"], round(score["streams"])
    queries, refreshes = power_laps()
    if ended.keys() >= {*queries, *refreshes}:
        result["power"] = power_at_size(
            [interval(ended[name].elapsed_s) for name in queries],
            [interval(ended[name].elapsed_s) for name in refreshes],
            scale_factor,
        )
    names = {name for stream in throughput_streams(streams) for name in stream}
    if names and ended.keys() >= names:
        # From the beginning of the first to the end of the last.
        begun = [(lap.started_s or 0.0, lap.elapsed_s) for lap in map(ended.__getitem__, names)]
        span_s = max(start + elapsed for start, elapsed in begun) - min(start for start, _ in begun)
        result["throughput"] = throughput_at_size(streams, interval(span_s), scale_factor)
    if len(result) == 2:
        result["composite"] = composite_at_size(result["power"], result["throughput"])
    return result
