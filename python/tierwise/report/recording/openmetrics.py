"""A profile as OpenMetrics text, for the textfile collector of node_exporter.

Format by 'OpenMetrics 1.0': metadata, then samples, then ``# EOF``. Prometheus' own text format, which the
collector reads, takes ``# UNIT`` and ``# EOF`` for comments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from tierwise.model.names import printable, sum_by_key
from tierwise.predict.time_savings import TimeSavings
from tierwise.recording.breakdown import Breakdown

Labels = Mapping[str, str]
NO_ROLE = "none"
"""Label of time and savings that belong to no role."""


@dataclass(frozen=True)
class MetricFamily:
    """A metric: its name, unit and meaning."""

    name: str
    unit: str
    help: str


TIME = MetricFamily(
    "tierwise_time_share_ratio", "ratio", "Share of a thread class's time that went to a part, by role."
)
RATE = MetricFamily(
    "tierwise_rate_transactions_per_second", "transactions_per_second", "Transactions a second."
)
SAVED = MetricFamily(
    "tierwise_saving_bound_ratio",
    "ratio",
    "Share of the time that moving a role, or all of them, saves at most.",
)
SPEEDUP = MetricFamily(
    "tierwise_speedup_bound_ratio",
    "ratio",
    "Rate with a role, or all of them, on a device that takes no time, over the recorded rate.",
)
BUSY = MetricFamily(
    "tierwise_cpu_busy_ratio", "ratio", "Share of all cores' time that the recorded threads used."
)
STARTED = MetricFamily(
    "tierwise_recording_start_seconds", "seconds", "Unix time at which the recording started."
)
FAMILIES = (TIME, RATE, SAVED, SPEEDUP, BUSY, STARTED)


def openmetrics_text(
    breakdown: Breakdown, saved: TimeSavings, labels: Labels, rate_per_s: float | None, started_at: str
) -> str:
    """The metrics of one recording; a value that is not known has no sample."""
    started_s = _seconds(started_at)
    samples: dict[MetricFamily, list[tuple[Labels, float]]] = {
        TIME: [
            ({"class": class_time.name, "part": part.part, "role": part.role or NO_ROLE}, part.share)
            for class_time in breakdown.classes
            for part in class_time.slices
        ],
        RATE: [] if rate_per_s is None else [({}, rate_per_s)],
        SAVED: [({"role": row.role}, row.share) for row in saved.rows if row.share is not None],
        SPEEDUP: [({"role": row.role}, row.speedup.value) for row in saved.rows if row.speedup is not None],
        BUSY: [({}, breakdown.busy_share)],
        STARTED: [] if started_s is None else [({}, started_s)],
    }
    lines = [
        line for family in FAMILIES if samples[family] for line in _family(family, samples[family], labels)
    ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(family: MetricFamily, samples: Iterable[tuple[Labels, float]], labels: Labels) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}"
    yield f"# TYPE {family.name} gauge"
    yield f"# UNIT {family.name} {family.unit}"
    # An observation has several waits for one part.
    sums = sum_by_key((tuple({**labels, **own}.items()), value) for own, value in samples)
    for pairs, value in sums.items():
        if math.isfinite(value):
            shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in pairs)
            yield f"{family.name}{{{shown}}} {value!r}"


def _escaped(text: str) -> str:
    """Printable, so without line feeds; a backslash before each backslash and quotation mark."""
    return printable(text).replace("\\", r"\\").replace('"', r"\"")


def _seconds(started_at: str) -> float | None:
    try:
        return datetime.fromisoformat(started_at).timestamp()
    except (ValueError, OverflowError):
        return None
