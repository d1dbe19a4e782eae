"""Cross-check: mean-value analysis of the same scenario.

Exact mean-value analysis of one class of clients (Reiser and Lavenberg, JACM 27(2), 1980). The cores are one
queue of ``c`` servers: a queue of 1/c of the demand and a delay of the rest (Seidmann, Schweitzer and
Shalev-Oren, *Computerized closed queueing network models of flexible manufacturing systems*, 1987). A commit
waits for the rest of the flush in progress and for its own, ``F·(1 + U/2)``. A flush takes ``F`` and serves
all commits that arrived during the one before. Flushes are in progress for the share
``U = λF / (λF + exp(−λF))`` of time (bulk service: Bailey, JRSS B 16(1), 1954). Think time and processor
time come from the recording. The number and time of flushes, and the waits for data and locks, which have no
queue here, come from the simulation.
"""

from __future__ import annotations

import math

from tierwise.model.numbers import signed_percent_text
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import SimulationOutcome, WorkSummary, time_share

_OTHER_WAITS = ("read", "write", "lock", "sleep", "other")
_SATURATED = 1e-6
"""Relative growth of the rate by one more client, below which all further clients wait."""
_UNLIKE = math.log(1.15)
"""Difference of the logarithms above which an answer says that the two differ."""


def mean_value_rate_per_s(
    scenario: Scenario, work: WorkSummary, outcome: SimulationOutcome, simulated_per_s: float
) -> float | None:
    """The rate by mean-value analysis; ``None`` for work done once, at a rate, with settings, or without
    processor time.
    """
    demands = work.demands
    clients = scenario.clients or work.sessions
    if (
        work.once
        or scenario.settings  # commits that do not wait
        or work.arrivals_per_s(scenario)
        or demands.cpu_us <= 0
        or simulated_per_s <= 0
        or outcome.transactions == 0
    ):
        return None
    response_us = clients * 1e6 / simulated_per_s
    delay_us = demands.think_us + response_us * time_share(outcome.shares, _OTHER_WAITS)
    cpu_us = (demands.cpu_us + demands.flush_cpu_us) / scenario.cpu_speed
    commits, flush_us = _flushes(outcome, simulated_per_s)
    cores = scenario.cores or work.cores
    queue_us, rate, waiting = cpu_us / cores, 0.0, 0.0
    for number in range(1, clients + 1):
        at_cores_us = queue_us * (1 + waiting)
        log_us = log_wait_us(commits, rate, flush_us)
        before, rate = rate, number / max(delay_us + cpu_us - queue_us + at_cores_us + log_us, 1e-3)
        if abs(rate - before) <= _SATURATED * rate:
            break
        waiting = rate * at_cores_us
    return rate * 1e6


def mean_value_disagreement(analysed_per_s: float | None, simulated_per_s: float) -> str | None:
    """A sentence, if both rates are known and differ by more than 15 %."""
    if not analysed_per_s or abs(math.log(analysed_per_s / simulated_per_s)) <= _UNLIKE:
        return None
    return (
        f"mean-value analysis gives {significant_text(analysed_per_s)}/s where the simulation gives "
        f"{significant_text(simulated_per_s)}/s "
        f"({signed_percent_text(analysed_per_s / simulated_per_s - 1)}): "
        "one of them misses a queue"
    )


def _flushes(outcome: SimulationOutcome, simulated_per_s: float) -> tuple[float, float]:
    """Commits of a transaction that wait for a flush of the log, and the mean time of a flush."""
    log = next((role_io for role_io in outcome.io if role_io.role == Role.LOG), None)
    count = (log.flushes or log.writes) if log else 0
    if log is None or count == 0 or outcome.commits_per_flush <= 0 or outcome.elapsed_s <= 0:
        return 0.0, 0.0
    done = simulated_per_s * outcome.elapsed_s
    return outcome.commits_per_flush * count / done, 1e6 * log.busy_s / count


def flushing_share(offered: float) -> float:
    """Share of time in which a flush is in progress, if flushes of one commit each would take ``offered``."""
    return offered / (offered + math.exp(-offered)) if offered > 0 else 0.0


def log_wait_us(commits: float, per_us: float, flush_us: float) -> float:
    """Time that a transaction waits for the log."""
    return commits * _commit_us(per_us * commits * flush_us, flush_us)


def _commit_us(offered: float, flush_us: float) -> float:
    """Time of a commit where flushes of one commit each would take the share ``offered`` of time."""
    return flush_us * (1 + flushing_share(offered) / 2)
