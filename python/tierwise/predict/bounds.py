"""Upper bounds of the rate, from the recorded waits alone: no model, no simulation.

Operational analysis (Denning and Buzen, ACM Computing Surveys 10(3), 1978; asymptotic bounds: Lazowska,
Zahorjan, Graham and Sevcik, *Quantitative System Performance*, 1984, chapter 5). A client's cycle is never
shorter than its own time, its transaction's processor time and the waits that the scenario leaves as they
are; and the cores give no more processor time than they have.

A transaction's processor time falls with its waits. The path of the call that waited, the switch to another
thread and back, and caches that are cold afterwards go with them, and the recording does not part these from
the rest. Assumed: half of the time that devices were waited for may go with it, but 40 % of a transaction's
processor time stays; and a fifth is a cost of recording that was not subtracted. These are judgements with a
margin: with everything in memory, 49 to 79 % of the recorded processor time was left (pgbench -N, and order
entry on two engines; 2 cores). A read of a device costs more of it: 30 % was left of pgbench -S that read
from a cold 7,200 rpm disk, so 20 % stays where transactions read devices. Where a setting ends the wait for
a flush, more goes: 32 % was left of pgbench -N with synchronous_commit=off (8 clients), and 10 % of RocksDB's
overwrites with sync=false (4 threads), both recorded with the log on a 7,200 rpm disk. There 8 % stays; the
interval of an answer reaches as far. Whether bounds hold is measured on five engines
(docs/evidence/bounds.md) and in each round of ``tierwise validate``.

With more clients than were recorded a transaction takes less processor time, as flushes are shared and cores
stay warm (pgbench -N on PostgreSQL, 2 cores: less by at least 30 % with 4 clients than with 1). At least half
of it is assumed to be left with any number, by judgement. The recorded pauses of clients are a sample: a
bound takes them as shorter by what chance explains (``WorkSummary.chance``). More memory has no bound where
reads were recorded: a read that memory answers takes less processor time, which is estimated and not bounded.
Nor have fewer cores: waking an idle core takes processor time, and fewer are idle (one client's look-ups on
one core took a fifth of their time on two).
"""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.names import join_words
from tierwise.model.numbers import percent_text
from tierwise.model.placement import ROLE_NAMES, Role
from tierwise.predict import database_settings
from tierwise.predict.named_devices import RECORDED
from tierwise.predict.prediction import Bound
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import DEVICES, TransactionWait, WorkSummary

_UNRECORDED = 0.8
"""Share of the recorded processor time that is there without recording."""
_GOES_WITH_WAITS = 0.5
"""Processor time that goes with each microsecond of waiting, at most."""
_MOST_WITH_WAITS = 1.5
"""The same with what recording costs, in an answer: work that hardly waits for the log loses hardly any."""
_LEAST_CPU = 0.4
"""Share of the recorded processor time that is left when all waits are gone, at least."""
_LEAST_CPU_OF_READS = 0.2
"""The same where transactions read devices."""
_LEAST_CPU_OF_SETTINGS = 0.08
"""The same where a setting ends the wait for a flush."""
_LEAST_CPU_OF_MORE = 0.5
"""Share of a transaction's least processor time that is left with more clients than recorded, at least."""
_READS = 0.01
"""Reads of devices for each transaction from which that holds."""


def rate_upper_bound(scenario: Scenario, work: WorkSummary, recorded_rate_per_s: float) -> Bound | None:
    """The highest rate of an answer; ``None`` where the recording does not tell the processor time."""
    demands = work.demands
    if demands.cpu_us <= 0 or recorded_rate_per_s <= 0 or _answers_reads(scenario, work):
        return None
    if scenario.cores is not None and scenario.cores < work.cores:
        return None
    freed = _freed(scenario, work)
    stay_us = _stay_us(scenario, work, freed)
    cpu_us = _least_cpu_us(scenario, work, stay_us)
    path_us = cpu_us / scenario.cpu_speed
    think_us = 0.0 if work.arrivals_per_s(scenario) else demands.think_us * (1 - work.chance)
    cycle_us = max(think_us + path_us + stay_us, 1e-3)
    by_waits = (scenario.clients or work.sessions) * 1e6 / cycle_us
    cores = scenario.cores or work.cores
    bounds = [(by_waits, _gone(freed))]
    if (scenario.clients or work.sessions) > work.sessions:
        cpu_us *= _LEAST_CPU_OF_MORE
    by_cores = cores * scenario.cpu_speed * 1e6 / cpu_us
    share = percent_text(cpu_us / demands.cpu_us)
    give = f"{cores} cores give" if cores != 1 else "1 core gives"
    because = f"{give} no more, if a transaction takes {share} of the recorded processor time"
    bounds.append((by_cores, because))
    rate, because = min(bounds)
    if not _has_less(scenario, work) and rate < recorded_rate_per_s:
        rate, because = recorded_rate_per_s, "nothing that it changes was waited for"
    return Bound(rate_per_s=rate, speedup=rate / recorded_rate_per_s, because=because)


def least_cpu_share(scenario: Scenario, work: WorkSummary) -> float:
    """Share of a transaction's recorded processor time that is left, at least, without waits for the log.

    1 if it had none. Other waits stay, as those for reads on the same device, which a bound lets go.
    """
    cpu_us = work.demands.cpu_us
    if cpu_us <= 0:
        return 1.0
    waits = [wait for wait in work.demands.waits if wait.category in DEVICES]
    stay_us = sum(wait.time_us for wait in waits if wait.role != Role.LOG)
    ended_us = sum(wait.time_us for wait in waits) - stay_us
    return max(_least_cpu_us(scenario, work, stay_us), cpu_us - _MOST_WITH_WAITS * ended_us) / cpu_us


def _stay_us(scenario: Scenario, work: WorkSummary, freed: Sequence[Role]) -> float:
    """Waits of a transaction that are no shorter than recorded."""
    return sum(wait.time_us for wait in work.demands.waits if _stays(wait, scenario, work, freed))


def _least_cpu_us(scenario: Scenario, work: WorkSummary, stay_us: float) -> float:
    """The least processor time of a transaction of whose waits ``stay_us`` are left."""
    cpu_us = work.demands.cpu_us
    freed_us = sum(wait.time_us for wait in work.demands.waits if wait.category in DEVICES) - stay_us
    unrecorded_us = cpu_us if work.from_waits else _UNRECORDED * cpu_us
    reads = sum(work.demands.reads.values()) > _READS
    least = _LEAST_CPU_OF_READS if reads else _LEAST_CPU
    if scenario.settings:  # which may take the whole path of the log's flush away
        least = _LEAST_CPU_OF_SETTINGS
    return max(unrecorded_us - _GOES_WITH_WAITS * max(freed_us, 0.0), least * cpu_us)


def _freed(scenario: Scenario, work: WorkSummary) -> list[Role]:
    """Roles whose waits may end: those that move or that commits stop to wait for, and those beside them."""
    placed = scenario.devices_of(work.footprints)
    moved = {role for role, device in placed.items() if device != RECORDED}
    moved |= database_settings.roles_of_ending_waits(scenario.settings) & set(work.footprints)
    left = [device for device in work.devices if moved & set(device.roles)]
    beside = {role for device in left for role in device.roles}
    return [role for role in Role if role in moved | beside]


def _stays(wait: TransactionWait, scenario: Scenario, work: WorkSummary, freed: Sequence[Role]) -> bool:
    """Whether a wait is no shorter than recorded: for a device that nothing leaves, with no fewer clients."""
    if wait.category not in DEVICES or (scenario.clients or work.sessions) < work.sessions:
        return False
    return wait.role not in freed if wait.role else not freed


def _answers_reads(scenario: Scenario, work: WorkSummary) -> bool:
    """Whether more memory may answer reads that went to devices."""
    if (scenario.buffer_bytes or 0) > work.page_cache.engine_bytes:
        return True
    return (scenario.memory_bytes or 0) > work.memory_bytes and sum(work.demands.reads.values()) > 0


def _has_less(scenario: Scenario, work: WorkSummary) -> bool:
    return scenario.cpu_speed < 1 or (scenario.clients or work.sessions) < work.sessions


def _gone(freed: Sequence[Role]) -> str:
    """The waits assumed gone, in words."""
    if not freed:
        return "all waits for locks and cores gone"
    return f"all waits on {join_words([ROLE_NAMES[role] for role in freed])}, for locks and for cores gone"
