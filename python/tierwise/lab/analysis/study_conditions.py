"""Conditions of a study: machine, hosts, versions, seeds, settings, cold starts, and writes with FUA.

Source: PostgreSQL documentation, ``wal_sync_method``; MariaDB documentation, ``innodb_flush_method``. Linux
splits a write with FUA into a write and a flush for a device without FUA, as a loop device is
(block/blk-flush.c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from statistics import fmean

from tierwise.lab.analysis.multi_host_ratios import differing_hosts
from tierwise.lab.analysis.placement_rows import Measure, PlacementRow, Runs, seconds_per_work
from tierwise.model import numbers
from tierwise.model.names import capitalized, group_by_key
from tierwise.model.placement import Role
from tierwise.report.device_report import slower_depths
from tierwise.results import ColdStart, DeviceInfo, RunResult, StrictModel, StudyInfo


class HostRow(StrictModel):
    """One host beside the others."""

    host: str
    blocks: int
    """Complete ones."""
    cost: float
    """Its time for the same work over that of all hosts; the geometric mean of its complete blocks."""
    cost_differs: bool
    """Whether that differs from the others' by more than the noise within hosts."""
    speedups: dict[str, float]
    """Placement -> speed-up on this host."""
    differing: list[str]
    """Placements whose speed-up differs from the other hosts' in the same sense."""


def host_rows(by_placement: Runs, rows: Sequence[PlacementRow], measure: Measure) -> list[HostRow]:
    """A row for each host with a complete block; none unless there are several."""
    levels = _levels(by_placement, measure)
    if len(levels) < 2:
        return []
    means = {host: fmean(values) for host, values in levels.items()}
    mean, differing = fmean(means.values()), differing_hosts(levels)
    by_host = {row.placement: row.by_host for row in rows if row.by_host is not None}
    return [
        HostRow(
            host=host,
            blocks=len(levels[host]),
            cost=math.exp(means[host] - mean),
            cost_differs=host in differing,
            speedups={
                name: ratio.of_hosts[host] for name, ratio in by_host.items() if host in ratio.of_hosts
            },
            differing=[name for name, ratio in by_host.items() if host in ratio.differing],
        )
        for host in sorted(levels)
    ]


def host_caveats(hosts: Sequence[HostRow], rows: Sequence[PlacementRow]) -> list[str]:
    """A sentence for each host that differs by more than the noise, and on what to expect elsewhere."""
    texts = [
        f"host {host.host} takes {numbers.ratio_text(host.cost)} times the mean time of all hosts, which "
        "is more "
        "than the noise within hosts; ratios are within a host, so this cancels"
        for host in hosts
        if host.cost_differs
    ]
    for row in rows:
        if row.by_host is None or not row.by_host.differing:
            continue
        named = ", ".join(
            f"{host} ({numbers.ratio_text(row.by_host.of_hosts[host])})" for host in row.by_host.differing
        )
        span = numbers.interval_text(row.by_host.elsewhere) if row.by_host.elsewhere else ""
        texts.append(
            f"the gain of {row.placement} differs between hosts by more than the noise within them: {named}; "
            f"for a further host expect the {span}"
        )
    return [f"{capitalized(text)}." for text in texts]


def _levels(by_placement: Runs, measure: Measure) -> dict[str, list[float]]:
    """Host -> mean logarithm of the costs in each of its complete blocks."""
    times = [seconds_per_work(runs, measure) for runs in by_placement.values()]
    costs = group_by_key(
        (block, math.log(cost_s))
        for each in times
        for block, cost_s in zip(each.blocks, each.values_s, strict=False)
    )
    return group_by_key(
        (host, fmean(logs)) for (host, _), logs in sorted(costs.items()) if len(logs) == len(by_placement)
    )


_WRITE_THROUGH = {
    "wal_sync_method": ("open_datasync", "open_sync"),
    "innodb_flush_method": ("O_DSYNC",),
    "innodb_log_file_write_through": ("ON",),
}


def write_through_caveats(runs: Sequence[RunResult]) -> list[str]:
    """A sentence if the log of a run was written with FUA on an emulated device with a volatile cache."""
    texts = {
        f"{name} = {run.engine.settings[name]}"
        for run in runs
        for name, values in _WRITE_THROUGH.items()
        if run.engine.settings.get(name) in values
        and any(Role.LOG in device.roles and device.profile and device.write_cache for device in run.devices)
    }
    return [
        f"With {setting}, each write of the log carries FUA. An emulated disk with a volatile cache gets a "
        "write and a flush in its place, so that a device that honours FUA is faster than shown."
        for setting in sorted(texts)
    ]


_NOTABLE_SHARE = 0.1


def device_path_caveats(runs: Sequence[RunResult]) -> list[str]:
    """For each emulated device: the placements in which its path took over a tenth of its requests' time."""
    slowed = group_by_key(
        (device.profile, (run.placement, device))
        for run in runs
        for device in run.devices
        if device.profile and device.path_share is not None and device.path_share > _NOTABLE_SHARE
    )
    texts = []
    for profile, devices in slowed.items():
        placements = ", ".join(dict.fromkeys(placement for placement, _ in devices))
        share = numbers.percent_text(max(device.path_share or 0 for _, device in devices))
        texts.append(
            f"Under {placements} up to {share} of the time of the requests to {profile} was the path of the "
            "emulation, so that the device itself is faster than shown. "
            + (slower_depths(profile, devices[-1][1].attainable) or "")
        )
    return [text.strip() for text in texts]


_MOST_NAMED = 3


def cold_starts(run: RunResult) -> Iterator[ColdStart]:
    """Those before the run and before its laps."""
    for start in (run.cold_start, *(lap.cold_start for lap in run.laps)):
        if start is not None:
            yield start


def cache_states_of(run: RunResult) -> str:
    """State of the caches before the run, and whose were emptied."""
    dropped = {start.dropped for start in cold_starts(run)}
    return ", ".join([run.workload.caches, *(f"{name} dropped" for name in sorted(dropped))])


def page_cache_caveats(runs: Sequence[RunResult]) -> list[str]:
    """A sentence on the valid runs whose files did not all leave the page cache."""
    valid = [run for run in runs if run.status == "ok"]
    warned = [[text for start in cold_starts(run) for text in start.warnings] for run in valid]
    warm = [texts for texts in warned if texts]
    if not warm:
        return []
    named = list(dict.fromkeys(text for texts in warm for text in texts))
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return [f"{len(warm)} of {len(valid)} runs did not start cold: {'; '.join(named[:_MOST_NAMED])}{more}."]


class EngineSettings(StrictModel):
    """Settings of one engine: those that every run shared, and those that differed."""

    engine: str
    common: dict[str, str]
    varied: dict[str, list[str]]


class StudyConditions(StrictModel):
    """Conditions of a study; a fact that differed between runs lists every value it took."""

    facts: dict[str, list[str]]
    devices: dict[str, str]
    """Device name -> what it was."""
    settings: list[EngineSettings]
    order: list[str]
    """Placements in execution order."""
    first_started_at: datetime
    last_started_at: datetime
    planned: int | None
    """Runs that the study plans for the comparisons seen so far."""
    finished: int


def conditions_of(results: Sequence[RunResult], info: StudyInfo) -> StudyConditions:
    """Collect the conditions of all runs, at least one, of a study."""
    runs = sorted(results, key=lambda run: run.order)
    groups = {(run.engine.name, tuple(sorted(run.setting.items()))) for run in runs}
    planned = info.repeats * len(info.placements) * len(groups) if info.repeats and info.placements else None
    return StudyConditions(
        facts=constant_and_varying_facts(runs),
        devices=device_descriptions(runs),
        settings=[engine_settings_of(name, runs) for name in sorted({run.engine.name for run in runs})],
        order=[run.placement for run in runs],
        first_started_at=min(run.started_at for run in runs),
        last_started_at=max(run.started_at for run in runs),
        planned=planned,
        finished=len(runs),
    )


_TRANSACTIONS = "Transactions a run"
_FACTS: dict[str, Callable[[RunResult], str | None]] = {
    "Engine": lambda run: f"{run.engine.name} {run.engine.version}",
    "Workload": lambda run: run.workload.title + _content(run.workload.digest),
    "Scale": lambda run: f"{run.workload.scale:g}",
    "Constants of the workload": lambda run: (
        ", ".join(f"{name} = {value:g}" for name, value in sorted(run.workload.constants.items())) or None
    ),
    "Memory limit of the engine": lambda run: _known(run.workload.memory_bytes, numbers.size_text),
    "Parallelism of a statement": lambda run: _known(run.workload.parallelism, str),
    "Clients": lambda run: str(run.workload.clients),
    _TRANSACTIONS: lambda run: _known(run.transactions, numbers.count_text),
    "Warm-up transactions": lambda run: numbers.count_text(run.workload.warmup_transactions),
    "Caches before the warm-up": cache_states_of,
    "Seed": lambda run: str(run.study_seed),
    "Machine": lambda run: run.machine.host,
    "Processor": lambda run: f"{run.machine.cpu_model}, {run.machine.cores} cores",
    "Memory": lambda run: numbers.size_text(run.machine.memory_bytes),
    "Operating system": lambda run: run.machine.operating_system,
    "Kernel": lambda run: run.machine.kernel,
    "tierwise": lambda run: run.machine.tierwise_version,
}


def constant_and_varying_facts(runs: Sequence[RunResult]) -> dict[str, list[str]]:
    """Constant and varying facts by name: machine, engine, workload.

    Transactions that vary are no condition: the time was fixed.
    """
    facts = {name: values for name in _FACTS if (values := _values(name, runs))}
    if len(facts.get(_TRANSACTIONS, [])) > 1:
        del facts[_TRANSACTIONS]
    return facts


_NAME, _SIZE = "Workload", ("Scale", "Constants of the workload")


def work_differences(a: Sequence[RunResult], b: Sequence[RunResult]) -> str:
    """In what the work of two sets of runs differs, so that their whole times do not compare; empty if alike.

    Runs of laps do each thing once, so that the size of their database counts too.
    """
    every = [*a, *b]
    known = all(run.workload.digest for run in every)  # not of shipped workloads, nor in older results
    sides = [runs if known else [_by_name(run) for run in runs] for runs in (a, b)]
    words = []
    for name in (_NAME, *(_SIZE if any(run.laps for run in every) else ())):
        one, other = (", ".join(sorted(_values(name, runs))) or numbers.NONE for runs in sides)
        if one != other:
            words.append(f"{name.lower()} {one} against {other}")
    return "; ".join(words)


def _values(fact: str, runs: Sequence[RunResult]) -> list[str]:
    """Each value of a fact once, as it came."""
    values = dict.fromkeys(map(_FACTS[fact], runs))
    return [value for value in values if value is not None]


def _by_name(run: RunResult) -> RunResult:
    return run.model_copy(update={"workload": run.workload.model_copy(update={"digest": None})})


def _content(digest: str | None) -> str:
    return f" (content {digest})" if digest else ""


def _known(value: float | None, shown: Callable[[float], str]) -> str | None:
    return None if value is None else shown(value)


def device_descriptions(runs: Sequence[RunResult]) -> dict[str, str]:
    """Device name -> what it was."""
    return {d.name: _device(d) for run in runs for d in run.devices}


def _device(device: DeviceInfo) -> str:
    if device.profile is None:
        return f"real: {device.path}" if device.path else device.kind
    lies = ", lies about flushes" if device.lies_about_flush else ""
    return f"emulated: {device.profile} ({device.kind}{lies}){_content(device.digest)}"


def engine_settings_of(engine: str, runs: Sequence[RunResult]) -> EngineSettings:
    """Settings of one engine over its runs."""
    several = [run.engine.settings for run in runs if run.engine.name == engine]
    values = {
        name: list(dict.fromkeys(settings.get(name, "(not set)") for settings in several))
        for name in sorted({name for settings in several for name in settings})
    }
    return EngineSettings(
        engine=engine,
        common={name: value[0] for name, value in values.items() if len(value) == 1},
        varied={name: value for name, value in values.items() if len(value) > 1},
    )
