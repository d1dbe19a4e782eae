"""Whether a recording is usable for predictions, and if not, what to change: the same for every command."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tierwise.model.errors import TierwiseError
from tierwise.model.names import capitalized
from tierwise.model.placement import Role
from tierwise.model.units import significant
from tierwise.predict import Predictor
from tierwise.predict.counting import count_factor, counted_over_shown
from tierwise.predict.replayed import WorkSummary
from tierwise.predict.scenario import LEAST_MEMORY_BYTES
from tierwise.recording import About
from tierwise.results.measurements import Record

FEWEST_UNITS = 100
"""Fewest recorded transactions: with this number, chance alone moves the rate by 10 % (1/√n)."""
MOST_LOST_SHARE = 0.01
"""Share of the events that may be lost."""
MOST_FOREIGN_CPU_SHARE = 0.10
"""Share of the processors that other programs may use."""
MOST_STOLEN_CPU_SHARE = 0.05
"""Share of the processors that the hypervisor may give to others."""
MOST_REPRODUCTION_ERROR = 0.25
"""Largest relative error of the replayed rate of the recorded run. Smaller ones said nothing about the errors
of other placements."""
MOST_CPU_EXCESS = 1.5
"""Factor between the processor time with which the replay meets the recorded rate and the measured one, above
which there is a remark. Of 72 recordings of ``validate`` two are above it; their answers for other devices
erred by 3 to 47 %."""
MOST_COUNTER_DIFFERENCE = 0.05
"""Difference of the engine's own counters from the events above which there is a remark."""
MOST_COUNT_FACTOR = 2.0
"""Factor between the engine's count of transactions and the events' above which they are of different work.

Bursts cover a part of the time, so a load that changes makes some tens of per cent. Another server, or
transactions that no reply shows, such as commits in a procedure, make a factor."""
_MOST_COUNT_FACTOR_OF_CLIENTS = 100.0
"""The same of a client's count, whose transactions may be several of the engine's, or parts of one."""
_MOST_PER_S = 1e8
"""No database does more transactions a second."""
_MOST_OVER = 1.1
"""Time in bursts over that of the recording, above which the two contradict each other."""
MOST_COST = 0.20
"""Share of the rate lost to recording above which there is a remark."""
_MOST_PROGRAMS = 3
_WRITTEN_LOG_BYTES = 1 << 20
"""The log was written if the engine reports that it grew by more than this."""


class Remark(Record):
    """One problem of a recording."""

    reason: str
    """What is wrong."""
    fix: str
    """What to do."""
    blocks: bool
    """Whether it makes the recording unusable."""


class UsabilityFields(Record):
    """Usability as JSON."""

    usable: bool
    reasons: list[str]
    fixes: list[str]


class Usability(Record):
    """Whether a recording is usable, with its problems."""

    remarks: list[Remark] = []
    source: Literal["recording", "observation"] = "recording"

    @property
    def usable(self) -> bool:
        """Whether predictions from it can be trusted within their intervals."""
        return not any(remark.blocks for remark in self.remarks)

    @property
    def ordered(self) -> list[Remark]:
        """The remarks, those that make it unusable first."""
        return sorted(self.remarks, key=lambda remark: not remark.blocks)

    @property
    def reasons(self) -> list[str]:
        """The problem of each remark."""
        return [remark.reason for remark in self.remarks]

    @property
    def fixes(self) -> list[str]:
        """The fix of each remark, in the order of the reasons."""
        return [remark.fix for remark in self.remarks]

    @property
    def fields(self) -> UsabilityFields:
        """For JSON."""
        return UsabilityFields(usable=self.usable, reasons=self.reasons, fixes=self.fixes)

    @property
    def sentences(self) -> list[str]:
        """The verdict for a terminal, a line each."""
        first = f"This {self.source} is {'' if self.usable else 'not '}usable."
        if self.source == "observation" and self.usable:
            first = "This observation is usable for answers from waits only: they have wide intervals."
        return [first, *(f"{capitalized(remark.reason)}: {remark.fix}." for remark in self.ordered)]


def usability_of(recording: Path) -> Usability:
    """Replay a recording and judge it; one that cannot be replayed is not usable."""
    try:
        return usability(Predictor.open(recording))
    except TierwiseError as error:
        return not_replayed(error)


def not_replayed(error: TierwiseError) -> Usability:
    """The verdict on a recording that could not be replayed."""
    return Usability(remarks=[Remark(reason=error.message, fix=error.fix, blocks=True)])


def usability(predictor: Predictor) -> Usability:
    """Judge a recording by its metadata and by the result of its replay."""
    about = predictor.about
    remarks = [
        *([] if predictor.run.from_waits else _of_contradictions(about)),
        *_of_size(predictor),
        *_of_disturbance(about),
        *_of_contents(predictor),
        *_of_replay(predictor),
    ]
    return Usability(remarks=remarks, source="observation" if predictor.run.from_waits else "recording")


def _of_contradictions(about: About) -> Iterator[Remark]:
    """Fields of ``about.json`` that no recorder writes together: somebody has changed them."""
    cost, wrong = about.cost, list[str]()
    if about.bursts_s > _MOST_OVER * about.duration_s:
        wrong.append(f"bursts take {about.bursts_s:,.3g} s, and duration_s is {about.duration_s:,.3g}")
    if (about.transactions or 0) > _MOST_PER_S * about.duration_s:
        wrong.append(f"transactions is {about.transactions:,}, and duration_s is {about.duration_s:,.3g}")
    if cost is not None and not (0 <= cost.rate_ratio_low <= cost.rate_ratio <= cost.rate_ratio_high > 0):
        wrong.append("cost.rate_ratio does not lie in its interval, or is not above 0")
    if about.machine.memory_bytes < LEAST_MEMORY_BYTES:
        wrong.append(f"machine.memory_bytes is {about.machine.memory_bytes}")
    for field in wrong:
        yield Remark(
            reason=f"about.json contradicts itself: {field}",
            fix="copy the recording again from where it was made, or record again",
            blocks=True,
        )


def _of_size(predictor: Predictor) -> Iterator[Remark]:
    work, unit = predictor.work, predictor.run.unit
    seen = work.turns if unit == "requests" else work.transactions
    if seen >= FEWEST_UNITS or (work.once and predictor.about.is_whole):
        return
    if work.once and seen <= work.sessions:  # which a job of one statement cannot be told from
        yield Remark(
            reason="the bursts are a sample of work that is done once, so times are of the sample",
            fix="read how many times as fast it gets, or record with --duty 1 from its start to its end",
            blocks=False,
        )
        return
    longer = math.ceil(FEWEST_UNITS / max(seen, 1))
    once = "; a job that is done once, with --duty 1 from its start to its end" if work.once else ""
    yield Remark(
        reason=f"{seen} {unit} were seen, {FEWEST_UNITS} are needed",
        fix="observe longer"
        if predictor.run.from_waits
        else f"record at least {longer} times as long, or with a greater --duty{once}",
        blocks=True,
    )


def _of_disturbance(about: About) -> Iterator[Remark]:
    lost, taken = about.losses.lost_events, about.losses.recorded_events
    share = lost / max(lost + taken, 1)
    if share > MOST_LOST_SHARE:
        yield Remark(
            reason=f"the kernel dropped {share:.1%} of the events",
            fix="record with a shorter --burst",
            blocks=True,
        )
    foreign = about.foreign_cpu_share
    if foreign > MOST_FOREIGN_CPU_SHARE:
        yield Remark(
            reason=f"other programs used {foreign:.0%} of the processors",
            fix=f"stop {_programs(about)}",
            blocks=True,
        )
    stolen = about.stolen_cpu_share
    if stolen > MOST_STOLEN_CPU_SHARE:
        yield Remark(
            reason=f"the hypervisor gave {stolen:.0%} of the processors to other machines",
            fix="record at another hour, or expect rates and times of a slower machine",
            blocks=False,
        )
    if about.cost is not None and about.cost.rate_ratio_high < 1 - MOST_COST:
        yield Remark(
            reason=f"recording cost {1 - about.cost.rate_ratio:.0%} of the rate within bursts",
            fix="expect wider errors, or record with fewer clients",
            blocks=False,
        )
    elif about.cost is not None and about.cost.rate_ratio_low > 0 and not about.cost.is_known:
        yield Remark(
            reason="the bursts do not tell what recording cost: predictions start from the rate within them",
            fix="record longer, or expect a server that uses all cores to be some 10 % faster",
            blocks=False,
        )


def _programs(about: About) -> str:
    """The programs that used most of the processors, with pids and shares, and what to do instead."""
    named = [
        f"{program.program} (pid {', '.join(map(str, program.pids))}: {program.cpu_share:.0%})"
        for program in about.foreign_programs[:_MOST_PROGRAMS]
    ]
    instead = "while recording, or run the load from another machine"
    return f"{', '.join(named)} {instead}" if named else f"them {instead} (their names were not recorded)"


def _of_contents(predictor: Predictor) -> Iterator[Remark]:
    about, work = predictor.about, predictor.work
    log_bytes = about.counters.get("log_bytes", 0)
    if log_bytes > _WRITTEN_LOG_BYTES and Role.LOG not in work.footprints:
        yield Remark(
            reason=f"the engine wrote {log_bytes / 1e6:,.0f} MB of log, but no file of the log was seen",
            fix="give --rules that name the log's files",
            blocks=True,
        )
    if work.transactions == 0:
        yield Remark(
            reason="the events do not show where transactions end, so rates count requests",
            fix="record with --dsn, or read the rates as requests",
            blocks=False,
        )
    if predictor.run.unit == "slices":
        yield Remark(
            reason="the events show neither requests nor commits, so rates count slices of 10 ms of work",
            fix="read how many times as fast it gets, not the rates",
            blocks=False,
        )
    yield from _of_roles(work)
    counted = count_factor(about, work)
    who, most = ("engine", MOST_COUNT_FACTOR) if about.counters else ("client", _MOST_COUNT_FACTOR_OF_CLIENTS)
    if counted is not None and not 1 / most <= counted <= most:
        yield Remark(
            reason=f"the {who} counted {counted:.2g} times the transactions that the events show",
            fix="see that the DSN is of the recorded server, and record while the load is steady",
            blocks=True,
        )
        return
    factor = counted_over_shown(about, work)
    if factor is not None and abs(factor - 1) > MOST_COUNTER_DIFFERENCE:
        yield Remark(
            reason=f"the events show {1 / factor:.2f} times the transactions that were counted",
            fix="nothing is to be done, rates are corrected by the count",
            blocks=False,
        )


def _of_roles(work: WorkSummary) -> Iterator[Remark]:
    if work.from_waits:
        return
    if not work.footprints:
        yield Remark(
            reason="no file of a database was seen: the recorded program is a client, or of another engine",
            fix="record the server itself with --pid, or give --rules of its engine",
            blocks=True,
        )
    for file in work.unassigned:
        share = max((file.flush_share, "flushes"), (file.wait_share, "waits for files"))
        like = ", which is written like a log," if file.is_like_log else ""
        role = Role.LOG if file.is_like_log else Role.DATA
        yield Remark(
            reason=f"{file.path}{like} takes {share[0]:.0%} of the {share[1]} and has no role, "
            "so that predictions leave it out",
            fix=f"record again with --role {file.path}={role}, or the role that it has",
            blocks=True,
        )


def _of_replay(predictor: Predictor) -> Iterator[Remark]:
    run = predictor.run
    if abs(run.error) > MOST_REPRODUCTION_ERROR:
        model = "the coarse model of" if run.from_waits else "replaying"
        yield Remark(
            reason=f"{model} the recorded run gives {significant(run.reproduced_rate_per_s)} {run.unit} "
            f"a second where {significant(run.rate_per_s)} were recorded: {run.error:+.0%}",
            fix="record the job again, while nothing else runs"
            if predictor.work.once
            else "record longer, while nothing else runs and the load is steady",
            blocks=not run.from_waits,
        )
    cost = predictor.about.cost
    excess = predictor.replayer.cpu_scale * (cost.cpu_ratio if cost is not None and cost.knows_cpu else 1.0)
    if not 1 / MOST_CPU_EXCESS <= excess <= MOST_CPU_EXCESS:
        yield Remark(
            reason=f"the replay meets the recorded rate with {excess:.2g} times the measured processor time: "
            "the sessions waited for something that it lacks",
            fix="expect answers for other devices to be off by as much",
            blocks=False,
        )
