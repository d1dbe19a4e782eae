"""Limits of a recording, also of its memory: scenarios refused, intervals widened, each with its reason.

Widths without a measurement are judgements and reported as such: they are round numbers, not findings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tierwise.model import numbers
from tierwise.model.placement import EVERYTHING, Role, is_relation_name
from tierwise.model.units import GB, MIB
from tierwise.predict.named_devices import RECORDED, resolve_device
from tierwise.predict.prediction import Refusal
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import CHANCE, WorkSummary
from tierwise.recording.buffer_content import BufferContent

_PER_DOUBLING_OF_CORES = 0.10
"""Half width for each doubling or halving of the cores, of two or more."""
_ONE_CORE = 0.45
"""Half width from several cores to one, or from one to several: threads that share a core start each other
for less. Measured: six loads of PostgreSQL 15 on the own disk, clients beside it (docs/how-to/machine.md)."""
_ONE_CORE_ONE_CLIENT = 1.3
"""The same where one client and its session take turns: predictions were off by three times."""
_PER_DOUBLING_OF_CLIENTS = 0.30
"""The same for each doubling or halving of the clients. Measured: pgbench -N on PostgreSQL 15,
own disk, 2 cores, recorded twice each with 1, 4, 10 and 32 clients."""
_CPU_SPEED = 0.05
"""Half width for each doubling or halving of the processor's speed: memory does not scale with it."""
_COARSE = 0.4
"""Half width for the coarse model: most of its answers were closer to those of recordings of the same runs
(benchmarks/observe.py on one machine, docs/evidence/observe.md)."""
_MOST_STOLEN = 0.9
"""Stolen share above which the interval grows no wider."""


@dataclass
class Uncertainty:
    """The uncertainties of an answer.

    Attributes:
        half_widths: of 95 % intervals of the logarithm of a rate or latency, independent of each other.
        warnings: their reasons, and others, as sentences.
    """

    half_widths: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def widen(self, half_width: float, reason: str, by: str = "judgement rather than measurement") -> None:
        """Add a half width with its reason and its basis."""
        self.half_widths.append(half_width)
        self.warnings.append(f"{reason}: the interval is wider for it, by {by}")


def scenario_refusal(scenario: Scenario, work: WorkSummary, role_bytes: Mapping[Role, int]) -> Refusal | None:
    """The reason why the recording cannot answer a scenario, if it cannot.

    Args:
        scenario: what is asked.
        work: that was recorded.
        role_bytes: of all files of each role, touched or not, as far as the recording knows.
    """
    if scenario.memory_bytes is not None and not work.can_change_memory:
        return Refusal(
            message=f"another memory size cannot be predicted from this recording: {work.memory_reason}",
            fix="leave out --memory, or record with --duty 1 where the files are larger than memory",
        )
    if scenario.buffer_bytes is not None and not work.can_change_memory:
        return Refusal(
            message=f"another buffer cannot be predicted from this recording: {work.memory_reason}",
            fix="leave out --buffer",
        )
    if work.once and scenario.clients not in (None, work.sessions):
        return Refusal(
            message="other clients cannot be predicted for work that is done once: the recording does not "
            "show what of it they could share",
            fix="leave out --clients",
        )
    if scenario.settings and work.from_waits:
        return Refusal(
            message="settings cannot be answered from waits only", fix="leave them out, or use a recording"
        )
    if scenario.instance and work.from_waits:
        return Refusal(
            message="the limits of a machine cannot be answered from waits only",
            fix="leave out --instance, or use a recording",
        )
    return _too_small(scenario, work, role_bytes)


def devices_with_ranges(scenario: Scenario, work: WorkSummary) -> list[str]:
    """Devices of a scenario whose profiles have ranges."""
    devices = dict.fromkeys(scenario.devices_of(work.footprints).values())
    return [name for name in devices if name != RECORDED and resolve_device(name).profile.ranges]


def uncertainty_of(scenario: Scenario, work: WorkSummary, stolen_cpu_share: float = 0.0) -> Uncertainty:
    """Uncertainties of an answer; ``stolen_cpu_share`` is the processor share that the hypervisor took."""
    uncertainty = Uncertainty()
    if stolen_cpu_share > CHANCE:
        uncertainty.widen(
            -math.log(1.0 - min(stolen_cpu_share, _MOST_STOLEN)),
            f"the hypervisor gave {numbers.percent_text(stolen_cpu_share)} of the processors to other "
            "machines "
            "while recording",
        )
    _widen_for_clients(scenario, work, uncertainty)
    if work.from_waits and scenario.changes:
        uncertainty.widen(
            _COARSE,
            "the coarse model leaves out checkpoints, and sessions that are ready to run and wait for a core",
            by="what six workloads on one machine showed",
        )
    _widen_for_cores(scenario, work, uncertainty)
    if scenario.cpu_speed != 1.0:
        uncertainty.widen(
            _CPU_SPEED * abs(math.log2(scenario.cpu_speed)),
            "processor time is taken to scale with the speed of a core alone",
        )
    for name in devices_with_ranges(scenario, work):
        uncertainty.warnings.append(
            f"{name} varies between drives and runs ({_in_words(resolve_device(name).profile.ranges)}): "
            "the interval holds both ends"
        )
    for role in scenario.placement:
        if role != EVERYTHING and not is_relation_name(role) and Role(role) not in work.footprints:
            uncertainty.warnings.append(
                f"the recording has no file of role {role}: its device changes nothing"
            )
    return uncertainty


def _in_words(ranges: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{key} {least:g} to {most:g}" for key, (least, most) in ranges.items())


def _widen_for_cores(scenario: Scenario, work: WorkSummary, uncertainty: Uncertainty) -> None:
    cores = scenario.cores or work.cores
    least, most = sorted((cores, work.cores))
    if least == most:
        return
    if least == 1:
        alone = (scenario.clients or work.sessions) == 1
        uncertainty.widen(
            _ONE_CORE_ONE_CLIENT if alone else _ONE_CORE,
            "threads on one core start each other for less than threads on several cores",
            by="what six loads on one machine showed",
        )
    if most > 2:
        uncertainty.widen(
            _PER_DOUBLING_OF_CORES * math.log2(most / max(least, 2)),
            f"{numbers.counted_noun(cores, 'core')} {'is' if cores == 1 else 'are'} "
            f"{'more' if cores > work.cores else 'fewer'} than the {work.cores} recorded, and what the "
            "engine's own latches cost there was not seen",
        )


def _widen_for_clients(scenario: Scenario, work: WorkSummary, uncertainty: Uncertainty) -> None:
    clients = scenario.clients
    if clients is None or clients == work.sessions:
        return
    uncertainty.widen(
        _PER_DOUBLING_OF_CLIENTS * abs(math.log2(clients / max(work.sessions, 1))),
        f"{numbers.counted_noun(clients, 'client')} {'is' if clients == 1 else 'are'} "
        f"{'more' if clients > work.sessions else 'fewer'} than the {work.sessions} "
        "recorded, and who runs on which core, shares flushes and waits for locks changes with them",
        by="what one trial on pgbench showed",
    )


def _too_small(scenario: Scenario, work: WorkSummary, role_bytes: Mapping[Role, int]) -> Refusal | None:
    """Refuse a device that cannot hold the files; of roles whose tables part, those that were touched."""
    needed: dict[str, int] = {}
    whole = {} if Role.SELECTED in work.footprints else role_bytes
    for role, device in scenario.devices_of(work.footprints).items():
        if device != RECORDED:
            size_bytes = max(work.footprints[role], whole.get(role, 0))
            needed[device] = needed.get(device, 0) + round(size_bytes * (scenario.growth or 1.0))
    for device, size_bytes in needed.items():
        capacity_bytes = resolve_device(device).profile.capacity_bytes
        if size_bytes > capacity_bytes:
            return Refusal(
                message=f"{device} holds {capacity_bytes / GB:,.1f} GB, the files placed there have "
                f"{size_bytes / GB:,.1f} GB",
                fix="place fewer roles there, or name a larger device",
            )
    return None


LIKELY = "likely"
"""The simulator's default assumption about reads that another memory size may or may not answer."""
_EXTREMES = ("fewest", "most")
"""Its extreme assumptions: all of these reads are answered, or none."""
_LEAST_UNSURE = 0.005
"""Half width up to which it is ignored."""
_UNEXPLAINED = 0.05
"""Share of unexplained reads above which the page cache is said to differ from the model's."""
_OTHERWISE = 0.1
"""Half width for that difference."""


_FULL = 0.9
"""Share of a smaller buffer up to which what the recorded one held is said to fit: a judgement."""
_SCANNED_PAST = 4
"""PostgreSQL reads a table of more than this part of the buffer past it when it scans all of it."""


def has_smaller_buffer(scenario: Scenario, work: WorkSummary) -> bool:
    """Whether a scenario has a smaller buffer than the recorded one."""
    return scenario.buffer_bytes is not None and scenario.buffer_bytes < work.page_cache.engine_bytes


def smaller_buffer_refusal(
    scenario: Scenario, recorded_bytes: int, held: BufferContent | None, scanned_bytes: Sequence[int] | None
) -> Refusal | None:
    """The reason why a smaller buffer is not known to hold all that the recorded one held; ``None`` if it is.

    Args:
        held: what that held at the end of the recording, if it was asked.
        scanned_bytes: sizes of tables that the engine may read past its buffer; ``None`` if not known.
    """
    asked_bytes = scenario.buffer_bytes or recorded_bytes
    least, most = asked_bytes // _SCANNED_PAST, recorded_bytes // _SCANNED_PAST
    fix = "ask for a larger buffer, or record with a smaller one"
    if held is None:
        why, fix = "", f"{fix}; record --buffer-content tells whether all of it is in use"
    elif held.used_bytes > _FULL * asked_bytes:
        why = f": {held.used_bytes / MIB:,.0f} MiB of it held pages at the end"
    elif scenario.growth is not None:
        why = ": more data fills more of it"
    elif scanned_bytes is None:
        why = ", as the sizes of tables are not: large ones are scanned past it"
    elif any(least < size <= most for size in scanned_bytes):
        why = f": a table of more than {least / MIB:,.0f} MiB would be scanned past it, and was not"
    else:
        return None
    lets = f"which reads a buffer of less than the recorded {recorded_bytes / MIB:,.0f} MiB would let through"
    return Refusal(message=f"{lets} is not known{why}", fix=fix)


def smaller_buffer_warning(held: BufferContent) -> str:
    """What the answer with a smaller buffer rests on."""
    return (
        f"the recorded buffer held {held.used_bytes / MIB:,.0f} MiB at the end, all of which fits the "
        "smaller one: reads are as recorded, and so is the page cache, as the kernel gives it what a buffer "
        "does not use; what the engine sizes by its buffer, such as wal_buffers, is taken as recorded; a "
        "server that was started shortly before the recording fills more of it later"
    )


def memory_assumptions(scenario: Scenario, work: WorkSummary) -> Sequence[str]:
    """Further assumptions about open reads that a scenario is simulated with."""
    other_memory = scenario.memory_bytes not in (None, work.memory_bytes)
    return _EXTREMES if other_memory or _other_buffer(scenario, work) else ()


def widen_for_memory(
    scenario: Scenario, work: WorkSummary, rates: Sequence[float], likely: float, uncertainty: Uncertainty
) -> None:
    """Add the assumptions about memory as warnings, and widen the interval by the distance of the bounds."""
    if not memory_assumptions(scenario, work):
        return
    cache = work.page_cache
    if cache.engine_bytes and not _other_buffer(scenario, work):
        kept = f"the engine's own buffer stays at {cache.engine_bytes / MIB:,.0f} MiB"
        if cache.passed:
            uncertainty.warnings.append(
                f"{kept} and its files are read past the page cache: other memory changes little"
            )
        else:
            uncertainty.warnings.append(f"{kept}: the page cache alone is of another size")
    if cache.unexplained > _UNEXPLAINED and not cache.passed:
        uncertainty.widen(
            _OTHERWISE,
            f"{numbers.percent_text(cache.unexplained)} of the reads were answered otherwise than by a cache "
            "that drops what was unused for longest",
        )
    apart = _apart(rates, likely)
    if apart > _LEAST_UNSURE:
        uncertainty.half_widths.append(apart)
        uncertainty.warnings.append(
            "the recording does not tell of some reads whether that much memory answers them: the interval "
            "holds that all or none are answered"
        )


def _other_buffer(scenario: Scenario, work: WorkSummary) -> bool:
    return scenario.buffer_bytes not in (None, work.page_cache.engine_bytes)


def _apart(rates: Sequence[float], likely: float) -> float:
    """How far the furthest rate lies from the likely one, on the logarithm."""
    if likely <= 0 or not rates:
        return 0.0
    return max(abs(math.log(rate / likely)) if rate > 0 else math.inf for rate in rates)
