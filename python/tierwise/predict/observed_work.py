"""The work that an observation shows, in the form of a recording's: demands and waits of a transaction.

Little's law: sessions in a state, over the rate of transactions, is the time that a transaction spends in it
(Lazowska, Zahorjan, Graham and Sevcik, *Quantitative System Performance*, 1984, chapter 3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from tierwise.model.errors import TierwiseError
from tierwise.model.names import sum_by_key
from tierwise.model.placement import Role
from tierwise.predict import mean_value_analysis
from tierwise.predict.simulator_output import (
    DEVICES,
    Demands,
    RecordedDevice,
    RecordedFigures,
    TransactionWait,
    WorkSummary,
)
from tierwise.recording.breakdown import LOG_PARTS, Part
from tierwise.recording.observation import PARTS, Observation

FROM_WAITS = (
    "from waits only: sessions' states were sampled over SQL, and no event of the kernel was recorded. "
    "Time without a core counts as the last wait, as the client's or as processor time: answers and bounds "
    "hold for cores as busy as observed"
)
_BISECTIONS = 50
_LEAST_CPU_US = 1e-3
"""Where no session was seen running, the processor is no limit."""


@dataclass(frozen=True)
class LogDemand:
    """What a transaction asks of the log.

    Attributes:
        commits: of a transaction that wait for a flush.
        flush_us: time of a flush where the log lay.
        flush_bytes: log written with a flush.
        counted: whether the server counted its flushes.
    """

    commits: float
    flush_us: float
    flush_bytes: float
    counted: bool


def observed_rate_per_s(seen: Observation) -> float:
    """Transactions a second."""
    if not seen.transactions:
        raise TierwiseError(
            "the observation counts no transaction, so that nothing can be predicted from it",
            "observe again while the database works, and until the end",
        )
    return seen.transactions / seen.counted_s


def observed_work_of(seen: Observation) -> WorkSummary:
    """The work of a transaction."""
    rate = observed_rate_per_s(seen)
    clients = max(round(seen.sessions), 1)
    per_us = clients / max(seen.sessions, 1e-9) * 1e6 / rate
    times_us: defaultdict[tuple[Part, Role | None], float] = defaultdict(float)
    for wait in seen.waits:
        times_us[PARTS[wait.wait_class], wait.role] += wait.sessions * per_us
    waits = [
        TransactionWait(category=part, role=role, time_us=time_us)
        for (part, role), time_us in times_us.items()
        if part not in ("cpu", "client") and time_us > 0
    ]
    cpu_us = max(seen.running * per_us, _LEAST_CPU_US)
    waited = {wait.role for wait in waits if wait.role is not None}
    waited |= {Role.LOG} if seen.counts.get("log_bytes") else set()
    roles = [role for role in Role if role in waited or role in seen.sizes]
    shares: dict[str, float] = sum_by_key(
        (PARTS[wait.wait_class], wait.sessions / max(seen.sessions, 1e-9)) for wait in seen.waits
    )
    return WorkSummary(
        cores=seen.cores or clients,
        memory_bytes=0,
        sessions=clients,
        turns=seen.transactions or 0,
        transactions=seen.transactions or 0,
        span_s=seen.counted_s,
        once=False,
        footprints={role: seen.sizes.get(role, 0) for role in roles},
        devices=_devices(seen, roles),
        observed=RecordedFigures(turns_per_s=rate, transactions_per_s=rate, shares=shares),
        demands=Demands(
            think_us=seen.sessions_in("client") * per_us,
            server_cpu_us=cpu_us,
            waits=waits,
        ),
        can_change_memory=False,
        memory_reason="waits do not tell which reads more memory would answer",
        limits=[FROM_WAITS],
        from_waits=True,
    )


def log_demand(seen: Observation, work: WorkSummary) -> LogDemand:
    """What a transaction asks of the log, from the waits for it and the server's count of its flushes."""
    per_us = work.observed.transactions_per_s / 1e6
    waited_us = sum(wait.time_us for wait in work.demands.waits if wait.category in LOG_PARTS)
    flushes = seen.counts.get("log_flushes", 0)
    written = seen.counts.get("log_bytes", 0)
    if waited_us <= 0:
        return LogDemand(0.0, 0.0, written / flushes if flushes else 0.0, flushes > 0)
    each_us = seen.sessions_in("log_sync") * seen.counted_s * 1e6 / flushes if flushes else 0.0
    if each_us <= 0:
        flush_us = _solve_increasing(
            lambda time_us: mean_value_analysis.log_wait_us(1.0, per_us, time_us), waited_us, waited_us
        )
        return LogDemand(1.0, flush_us, written / (seen.transactions or 1), False)
    timed_us = seen.counts.get("log_flush_us")
    flush_us = timed_us / flushes if timed_us else each_us
    commits = _solve_increasing(
        lambda count: mean_value_analysis.log_wait_us(count, per_us, flush_us), waited_us, 1.0
    )
    return LogDemand(commits, flush_us, written / flushes, True)


def is_wait_off_log_device(wait: TransactionWait) -> bool:
    """Whether a wait is for a device other than the log's."""
    return wait.category in DEVICES and wait.category not in LOG_PARTS


def _solve_increasing(function: Callable[[float], float], wanted: float, most: float) -> float:
    """Where an increasing function reaches ``wanted``; ``most`` if it does not up to there."""

    low, high = 0.0, most
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < wanted else (low, middle)
    return high


def _devices(seen: Observation, roles: list[Role]) -> list[RecordedDevice]:
    """Roles by the device that they share; those of unknown devices may all share one."""
    names = [seen.devices.get(role) for role in roles]
    return [
        RecordedDevice(profile=None, roles=[role for role in roles if seen.devices.get(role) == name])
        for name in dict.fromkeys(names)
    ]
