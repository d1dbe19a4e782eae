"""The figures of each recording of a day, and the recordings that stand for its peak, mean and worst hour.

The figures are those observed in each recording; nothing is replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Literal, NamedTuple

from tierwise.model import executor, numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.names import group_by_key
from tierwise.model.placement import Role
from tierwise.predict.rate_unit import FEWEST_UNITS, rate_unit_of
from tierwise.predict.replayer import Replayer
from tierwise.predict.simulator_output import WorkSummary
from tierwise.recording import Day, Recording
from tierwise.recording.breakdown import Breakdown, break_down
from tierwise.results.measurements import StrictModel

Load = Literal["peak", "mean", "worst-p99"]
"""The loads of a day that advice is given for."""
_HOUR_S = 3600.0
_LOG_WAITS = ("log_device", "log_queue")


class TimelineMoment(StrictModel):
    """What one recording of a day shows."""

    recording: str
    """Name of its folder."""
    started_at: str
    """UTC, as ``2026-11-23T14:20:05Z``."""
    duration_s: float
    """Length of the recording, with the time between bursts."""
    seen: int = 0
    """Transactions (or requests) that ended within its bursts."""
    rate_per_s: float | None = None
    """``None`` if no work was seen."""
    p50_us: float | None = None
    """Median latency of transactions."""
    p99_us: float | None = None
    """99th percentile of the latency of transactions."""
    clients: int = 0
    """Client sessions."""
    log_wait_share: float | None = None
    """Share of the sessions' time that went to the log: its device, and others' flushes."""
    busy: dict[Role, float] = {}
    """Share of the time in which at least one request of the role was at its device."""
    without: str = ""
    """Why there is no rate; empty if there is one."""
    warnings: list[str] = []
    """Of the recording."""


class DayTimeline(StrictModel):
    """A day in figures."""

    folder: str
    """Name of the day's folder."""
    unit: str
    """What rates count: ``transactions``, or ``requests`` if one recording shows no end of a transaction."""
    moments: list[TimelineMoment]
    """One for each recording, the earliest first."""
    chosen: dict[Load, str]
    """Load -> name of the recording that stands for it; empty if no recording shows work.

    ``peak`` has the highest rate, ``mean`` the rate nearest to the mean over all recordings. ``worst-p99`` is
    of the hour with the highest median p99, the recording with the highest p99. Recordings with fewer than
    ``FEWEST_UNITS`` transactions are not chosen if others have more.
    """
    mean_rate_per_s: float
    """Over all recordings that can be read; one without work counts as 0."""
    warnings: list[str]
    """Of the day: recordings that cannot be read, several engines, machines or settings."""

    @property
    def roles(self) -> list[Role]:
        """Roles with requests in at least one recording."""
        return [role for role in Role if any(moment.busy.get(role, 0.0) > 0 for moment in self.moments)]

    def moment(self, name: str) -> TimelineMoment:
        """The moment of a recording."""
        return next(moment for moment in self.moments if moment.recording == name)


def timeline_of(day: Day) -> DayTimeline:
    """Read every recording of a day, on all processors."""
    with ThreadPoolExecutor(executor.usable_processors()) as pool:
        contents = list(pool.map(_read, [recording.path for recording in day.recordings]))
    units = {rate_unit_of(content.work, None) for content in contents if not isinstance(content, str)}
    unit = units.pop() if len(units) == 1 else "requests"
    moments = [
        _moment(recording, content, unit) for recording, content in zip(day.recordings, contents, strict=True)
    ]
    mean = fmean(
        [
            moment.rate_per_s or 0.0
            for moment, content in zip(moments, contents, strict=True)
            if not isinstance(content, _UnreadableRecording)
        ]
        or [0.0]
    )
    return DayTimeline(
        folder=day.path.resolve().name,
        unit=unit,
        moments=moments,
        chosen=_chosen(moments, mean),
        mean_rate_per_s=mean,
        warnings=[*day.warnings, *_mixed_recordings_warnings(day.recordings)],
    )


class _Content(NamedTuple):
    work: WorkSummary
    breakdown: Breakdown


class _UnreadableRecording(str):
    """Why nothing is known of a recording: it may have work."""


def _read(path: Path) -> _Content | str:
    """The work in a recording and where its time went, or why there is none."""
    try:
        breakdown = break_down(path)
    except TierwiseError as error:
        return _UnreadableRecording(error.message)
    try:
        return _Content(Replayer.open(path).work, breakdown)
    except TierwiseError as error:
        return error.message


def _moment(recording: Recording, content: _Content | str, unit: str) -> TimelineMoment:
    started = datetime.fromisoformat(recording.about.started_at).astimezone(UTC)
    plain = TimelineMoment(
        recording=recording.path.name,
        started_at=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        duration_s=recording.about.duration_s,
        warnings=recording.warnings,
    )
    if isinstance(content, str):
        return plain.changed(without=content)
    counted = unit == "transactions"
    work, breakdown = content
    observed = work.observed
    shares = [observed.shares[name] for name in _LOG_WAITS if name in observed.shares]
    return plain.changed(
        seen=work.transactions if counted else work.turns,
        rate_per_s=observed.transactions_per_s if counted else observed.turns_per_s,
        p50_us=observed.p50_us,
        p99_us=observed.p99_us,
        clients=work.sessions,
        log_wait_share=sum(shares) if shares else None,
        busy={
            row.role: row.busy_s / breakdown.span_s
            for row in breakdown.roles
            if row.role and breakdown.span_s
        },
    )


def _chosen(moments: Sequence[TimelineMoment], mean: float) -> dict[Load, str]:
    working = [moment for moment in moments if moment.rate_per_s]
    enough = [moment for moment in working if moment.seen >= FEWEST_UNITS] or working
    if not enough:
        return {}
    peak = max(enough, key=lambda moment: moment.rate_per_s or 0.0)
    typical = min(enough, key=lambda moment: abs((moment.rate_per_s or 0.0) - mean))
    loads: dict[Load, str] = {"peak": peak.recording, "mean": typical.recording}
    if slow := [moment for moment in enough if moment.p99_us is not None]:
        worst_hour = max(_hours(slow), key=lambda hour: median(moment.p99_us or 0.0 for moment in hour))
        loads["worst-p99"] = max(worst_hour, key=lambda moment: moment.p99_us or 0.0).recording
    return loads


def _hours(moments: Sequence[TimelineMoment]) -> Iterable[list[TimelineMoment]]:
    """The recordings of each hour, counted from the first one's start."""
    first_s = _started_s(moments[0])
    return group_by_key(
        (int((_started_s(moment) - first_s) // _HOUR_S), moment) for moment in moments
    ).values()


def _started_s(moment: TimelineMoment) -> float:
    return datetime.fromisoformat(moment.started_at).timestamp()


def _mixed_recordings_warnings(recordings: Sequence[Recording]) -> list[str]:
    """Warnings of recordings that differ in their engine, machine or settings."""
    abouts = [recording.about for recording in recordings]
    machines = [about.machine for about in abouts]
    known = [
        ("engines", [about.engine for about in abouts]),
        ("numbers of cores", [numbers.count_text(machine.cores) for machine in machines]),
        ("sizes of memory", [numbers.size_text(machine.memory_bytes) for machine in machines]),
    ]
    warnings = [
        f"the recordings are of several {what}: {', '.join(dict.fromkeys(values))}"
        for what, values in known
        if len(set(values)) > 1
    ]
    common = set.intersection(*(set(about.settings) for about in abouts)) if abouts else set()
    changed = sorted(name for name in common if len({about.settings[name] for about in abouts}) > 1)
    return [*warnings, *([f"the recordings differ in settings: {', '.join(changed)}"] if changed else [])]
