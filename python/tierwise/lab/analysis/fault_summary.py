"""Power cuts and deaths of devices, summed up by setting and placement, and as sentences. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from tierwise.advise.durability import DeviceDeathCounts
from tierwise.lab.analysis.placement_summary import median_of_known
from tierwise.model import numbers
from tierwise.model.names import group_by_key
from tierwise.model.placement import Role
from tierwise.model.statistics import Interval, highest_plausible_share, median_interval
from tierwise.results import DeviceDeaths, DeviceInfo, PowerCuts, RunResult, StrictModel, StudyInfo
from tierwise.results.fault_results import InjectedFault


class PowerCutRow(StrictModel):
    """All cuts of one durability setting on one placement."""

    engine: str
    placement: str
    devices: str
    """What a power cut does to each device that the placement uses."""
    lies: bool
    """Whether one of them acknowledges flushes and does not obey them."""
    durability: str
    durable: bool
    promise: str
    cuts: int
    lost: int
    """Cuts that lost acknowledged commits, damaged databases left out."""
    damaged: int
    not_started: int
    """Of the damaged, those that the engine did not start from."""
    damage: str | None
    """Of the first damaged cut."""
    most_lost_ms: float | None
    """Age of the oldest lost commit, of all cuts."""
    at_least: bool
    """Whether that cut lost its whole load: a longer one would have lost more."""
    most_lost: int
    """Commits lost in one cut."""
    rate: Interval | None
    """Commits a second, median over the repeats."""
    ratio: Interval | None
    """Of rates to that of the durable setting on the same placement in the same repeat."""
    recovery_s: float | None
    """Median over the cuts."""
    clean_start_s: float
    check: str
    problems: list[str]
    """Why runs ended early."""
    on_frontier: bool = False

    @property
    def harmed(self) -> int:
        """Cuts that lost commits or damaged the database."""
        return self.lost + self.damaged

    @property
    def at_most(self) -> float:
        """Greatest share of such cuts that the counts allow, one-sided with 95 % confidence."""
        return highest_plausible_share(self.harmed, self.cuts)

    @property
    def breaks_promise(self) -> bool:
        """Whether commits are gone that the engine promised to keep on devices that obey flushes."""
        return self.durable and not self.lies and self.harmed > 0

    @property
    def loss(self) -> tuple[float, float]:
        """For comparison: the share of damaged cuts, then the age lost in ms."""
        return self.damaged / self.cuts, self.most_lost_ms or 0.0


def build_durability_frontier(results: Sequence[RunResult], info: StudyInfo) -> list[PowerCutRow]:
    """One row for each engine, placement and setting that was cut, in the order of the study."""
    groups = group_by_key(
        ((run.engine.name, run.placement, run.power_cuts.durability), (run, run.power_cuts))
        for run in results
        if run.power_cuts is not None and run.power_cuts.cuts
    )
    declared = [name for values in info.sweep.values() for name in values]

    def place(key: tuple[str, str, str]) -> tuple[str, int, int]:
        engine, placement, setting = key
        return engine, _position(info.placements, placement), _position(declared, setting)

    rows = [_row(groups[key], groups, info.seed) for key in sorted(groups, key=place)]
    return [
        row.model_copy(update={"on_frontier": not row.damaged and not _is_dominated(row, rows)})
        for row in rows
    ]


def _position(declared: Sequence[str], name: str) -> int:
    return declared.index(name) if name in declared else len(declared)


def _is_dominated(row: PowerCutRow, rows: Iterable[PowerCutRow]) -> bool:
    """Whether another row of its engine loses no more and commits faster, or loses less as fast."""
    rate = row.rate.estimate if row.rate else 0.0
    others = [
        (other.loss, other.rate.estimate if other.rate else 0.0)
        for other in rows
        if other.engine == row.engine
    ]
    return any(
        loss <= row.loss and faster >= rate and (loss, faster) != (row.loss, rate) for loss, faster in others
    )


Group = Sequence[tuple[RunResult, PowerCuts]]
"""Runs under one durability setting on one placement, each with its cuts."""


def _row(group: Group, groups: Mapping[tuple[str, str, str], Group], seed: int) -> PowerCutRow:
    runs, (first, harm) = [run for run, _ in group], group[0]
    cuts = [cut for _, of_run in group for cut in of_run.cuts]
    damaged = [cut for cut in cuts if cut.outcome == "damaged"]
    lost = [cut for cut in cuts if cut.outcome == "lost"]
    worst = max(lost, key=lambda cut: cut.oldest_lost_ms or 0, default=None)
    rates = [run.rate_per_s for run in runs if run.rate_per_s is not None]
    recoveries = [cut.recovery_s for cut in cuts if cut.recovery_s is not None]
    return PowerCutRow(
        engine=first.engine.name,
        placement=first.placement,
        devices="; ".join(device_with_cache_words(device) for device in first.devices),
        lies=any(device.lies_about_flush for device in first.devices),
        durability=harm.durability,
        durable=harm.durable,
        promise=harm.promise,
        cuts=len(cuts),
        lost=len(lost),
        damaged=len(damaged),
        not_started=sum(cut.recovery_s is None for cut in damaged),
        damage=damaged[0].damage if damaged else None,
        most_lost_ms=worst.oldest_lost_ms if worst else None,
        at_least=worst.whole_load if worst else False,
        most_lost=max((cut.lost for cut in lost), default=0),
        rate=median_interval(rates, seed=seed) if rates else None,
        ratio=_ratio(group, groups, seed),
        recovery_s=median(recoveries) if recoveries else None,
        clean_start_s=median(of_run.clean_start_s for _, of_run in group),
        check=_name_of_check(cuts),
        problems=[problem for run in runs for problem in run.problems],
    )


def _ratio(group: Group, groups: Mapping[tuple[str, str, str], Group], seed: int) -> Interval | None:
    """Ratios within a repeat, so that drift of the machine falls on both sides alike."""
    first, harm = group[0]
    durable = {
        run.repeat: run.rate_per_s
        for key, other in groups.items()
        for run, cuts in other
        if key[:2] == (first.engine.name, first.placement) and cuts.durable
    }
    ratios = [
        run.rate_per_s / base for run, _ in group if run.rate_per_s and (base := durable.get(run.repeat))
    ]
    return None if harm.durable or not ratios else median_interval(ratios, seed=seed)


def _name_of_check(faults: Sequence[InjectedFault]) -> str:
    return next((fault.check.name for fault in faults if fault.check is not None), "")


def device_with_cache_words(device: DeviceInfo) -> str:
    """A device by its profile, and what a power cut does to its completed writes."""
    what = device.profile or device.name
    if device.lies_about_flush:
        return f"{what} that lies about flushes"
    if device.write_cache is None:
        return what
    return f"{what}, {'volatile cache' if device.write_cache else 'nothing volatile'}"


class DeviceDeathRow(DeviceDeathCounts):
    """All deaths of the device of one role on one placement."""

    placement: str
    device: str
    """Profile of the device."""
    shared: list[Role]
    """Other roles on it, whose files died too."""
    ran_on: int
    """Deaths after which clients still got acknowledgements until the engine was stopped."""
    most_lost: int
    """Commits lost in one death after which the engine started."""
    owed: int
    """Commits that the database had to hold then."""
    recovery_s: float | None
    """Median over the deaths after which the engine started, with all steps."""
    clean_start_s: float
    refused: str | None
    """Why starting as it is was not enough, of the first death for which it was not."""
    damage: str | None
    """Of the first death that left the database damaged, or without a start."""
    check: str
    problems: list[str]
    """Why runs ended early."""


def build_death_rows(results: Sequence[RunResult]) -> list[DeviceDeathRow]:
    """One row for each engine, placement and role whose device died, by their names."""
    groups = group_by_key(
        ((run.engine.name, run.placement, run.device_deaths.role), (run, run.device_deaths))
        for run in results
        if run.device_deaths is not None and run.device_deaths.deaths
    )
    return [_death_row(groups[key]) for key in sorted(groups)]


def _death_row(group: Sequence[tuple[RunResult, DeviceDeaths]]) -> DeviceDeathRow:
    first, role = group[0][0], group[0][1].role
    deaths = [death for _, of_run in group for death in of_run.deaths]
    started = [death for death in deaths if death.start != "never"]
    worst = max(started, key=lambda death: death.lost, default=None)
    device = next(device for device in first.devices if role in device.roles)
    return DeviceDeathRow(
        engine=first.engine.name,
        placement=first.placement,
        role=role,
        device=device.profile or device.name,
        shared=[other for other in device.roles if other != role],
        deaths=len(deaths),
        as_is=sum(death.start == "as_is" for death in deaths),
        salvaged=sum(death.start == "salvaged" for death in deaths),
        never=len(deaths) - len(started),
        lost=sum(death.lost > 0 for death in started),
        damaged=sum(death.outcome == "damaged" for death in deaths),
        steps=list(dict.fromkeys(d.salvage for d in deaths if d.start == "salvaged" and d.salvage)),
        ran_on=sum(death.ran_on for death in deaths),
        most_lost=worst.lost if worst else 0,
        owed=worst.acknowledged if worst else 0,
        recovery_s=median_of_known([death.recovery_s for death in started]),
        clean_start_s=median(of_run.clean_start_s for _, of_run in group),
        refused=next((death.refused for death in deaths if death.refused), None),
        damage=next((death.damage for death in deaths if death.damage), None),
        check=_name_of_check(started),
        problems=[problem for run, _ in group for problem in run.problems],
    )


def power_cut_sentence(row: PowerCutRow) -> str:
    """What the cuts of one row showed: loss with its bound, damage, and the rate gained."""
    parts = [part for part in (_damage(row), _loss(row)) if part]
    nothing = f"0 of {row.cuts} cuts lost an acknowledged commit (so {harm_bound(row)})"
    gain = ""
    if row.ratio is not None:
        ends = numbers.ratio_span(row.ratio)
        gain = f", at {numbers.ratio_text(row.ratio.estimate)} times{f' ({ends})' if ends else ''} the rate"
    return f"{row.durability} on {row.placement}: {'; '.join(parts) or nothing}{gain}.{_warning(row)}"


def durability_headline(rows: list[PowerCutRow]) -> str:
    """The durable settings in one sentence; a device that lies about flushes keeps no engine's promise."""
    durable = [row for row in rows if row.durable and not row.lies]
    if not durable:
        return "No durable setting was cut on a device that obeys flushes."
    broken = [row for row in durable if row.breaks_promise]
    cuts = sum(row.cuts for row in durable)
    if broken:
        names = ", ".join(f"{row.durability} on {row.placement}" for row in broken)
        return f"Acknowledged commits were lost, or the database damaged, with a durable setting: {names}."
    text = (
        f"No acknowledged commit was lost in {numbers.counted_noun(cuts, 'power cut')} with a durable setting"
    )
    return f"{text}, on devices that obey flushes."


def harm_bound(row: PowerCutRow) -> str:
    """The greatest share of harmed cuts, such as ``at most 6 in 100, with 95 % confidence``."""
    return f"at most {harm_bound_percent(row)} in 100, with 95\u00a0% confidence"


def harm_bound_percent(row: PowerCutRow) -> int:
    """That share in percent, rounded up as a bound must be."""
    return math.ceil(100 * row.at_most - 1e-9)


def oldest_loss_age(row: PowerCutRow) -> str:
    """Age of the oldest lost commit; nothing where none was lost."""
    if row.most_lost_ms is None:
        return ""
    age = numbers.latency_text(row.most_lost_ms * 1e3)
    return f"at least {age}" if row.at_least else age


def _warning(row: PowerCutRow) -> str:
    """Cuts without harm do not make a setting safe that its makers call unsafe."""
    return "" if row.durable or row.harmed else f" Its documentation warns: {row.promise}."


def _loss(row: PowerCutRow) -> str:
    if not row.lost:
        return ""
    where = (
        f"the whole load, {oldest_loss_age(row)} of commits,"
        if row.at_least
        else f"up to {oldest_loss_age(row)} of commits"
    )
    return f"lost {where} in {row.lost} of {row.cuts} cuts"


def _damage(row: PowerCutRow) -> str:
    if not row.damaged:
        return ""
    stopped = f", {row.not_started} of them beyond starting" if row.not_started else ""
    return f"{row.damaged} of {row.cuts} cuts damaged the database{stopped}"


def death_headline(rows: Sequence[DeviceDeathRow]) -> str:
    """For each engine: roles whose death took nothing, took commits, or needs a backup."""
    return " ".join(
        _engine_headline(name, own) for name, own in group_by_key((row.engine, row) for row in rows).items()
    )


def death_sentence(row: DeviceDeathRow) -> str:
    """What the deaths of one role's device did."""
    also = f", with {', '.join(row.shared)}" if row.shared else ""
    load = {0: "", row.deaths: " Clients went on committing."}.get(
        row.ran_on, f" Clients went on committing in {row.ran_on} of {row.deaths}."
    )
    most = (
        f" At most {numbers.count_text(row.most_lost)} of {numbers.count_text(row.owed)} were gone."
        if row.lost
        else ""
    )
    return f"{row.role}{also} on {row.placement}: {row.words}.{most}{load}"


def _engine_headline(name: str, rows: Sequence[DeviceDeathRow]) -> str:
    safe = [row.role for row in rows if not (row.lost or row.damaged or row.never)]
    losing = [row.role for row in rows if row.role not in safe and not (row.damaged or row.never)]
    gone = [row.role for row in rows if row.damaged or row.never]
    parts = []
    for roles, what in ((safe, "takes no commit"), (losing, "takes commits"), (gone, "needs a backup")):
        if roles:
            parts.append(f"the death of {' or '.join(roles)} {what}")
    return f"{name}: {', '.join(parts)}."
