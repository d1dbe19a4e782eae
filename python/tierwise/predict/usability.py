"""Whether a recording is usable for predictions, and if not, what to change: the same for every command."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.names import capitalized, join_words
from tierwise.model.numbers import percent_text, signed_percent_text
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.predict import Predictor
from tierwise.predict.rate_unit import FEWEST_UNITS, count_factor, counted_to_shown_ratio
from tierwise.predict.scenario import LEAST_MEMORY_BYTES
from tierwise.predict.simulator_output import WorkSummary
from tierwise.recording import RecordingMetadata
from tierwise.recording.breakdown import LOG_PARTS
from tierwise.results.measurements import StrictModel

MOST_LOST_SHARE = 0.01
"""Share of the events that may be lost."""
MOST_FOREIGN_CPU_SHARE = 0.10
"""Share of the processors that other programs may use."""
MOST_STOLEN_CPU_SHARE = 0.05
"""Share of the processors that the hypervisor may give to others."""
_MOST_STOLEN_IF_USABLE = 0.5
"""Of these, above which a recording is of the hypervisor: a judgement."""
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
_MOST_SPAN = 2.0
"""The same of the time from the first burst to the last: a shipped recording of a short job has 1.4."""
_MOST_COST_RATIO = 4.0
"""Of a rate or a processor time in bursts over that between them, and its inverse. In 68 recordings they are
0.79 to 1.16 and 0.93 to 1.20, where they are known. The simulator limits them without a word."""
_MOST_WAITS_FOR_CORES = 0.10
"""Share of the sessions' time that waits for a core may take where those are limited: a judgement."""
MOST_COST = 0.20
"""Share of the rate lost to recording above which there is a remark."""
_MOST_PROGRAMS = 3
_WRITTEN_LOG_BYTES = 1 << 20
"""The log was written if the engine reports that it grew by more than this."""
_FEW_WAITS = 0.01
"""Share of the sessions' time that waits for the log may take where commits hardly matter: a judgement."""


class UsabilityRemark(StrictModel):
    """One problem of a recording."""

    reason: str
    """What is wrong."""
    fix: str
    """What to do."""
    blocks: bool
    """Whether it makes the recording unusable."""


def _blocking(reason: str, fix: str) -> UsabilityRemark:
    """A problem that makes the recording unusable."""
    return UsabilityRemark(reason=reason, fix=fix, blocks=True)


def _hint(reason: str, fix: str) -> UsabilityRemark:
    """A problem that leaves it usable."""
    return UsabilityRemark(reason=reason, fix=fix, blocks=False)


class UsabilityFields(StrictModel):
    """Usability as JSON."""

    usable: bool
    reasons: list[str]
    fixes: list[str]


class DatabaseUsability(UsabilityFields):
    """The same of one of several databases."""

    database: str
    """Name of its recording."""


class Usability(StrictModel):
    """Whether a recording is usable, with its problems."""

    remarks: list[UsabilityRemark] = []
    source: Literal["recording", "observation"] = "recording"

    @property
    def usable(self) -> bool:
        """Whether predictions from it can be trusted within their intervals."""
        return not any(remark.blocks for remark in self.remarks)

    @property
    def ordered(self) -> list[UsabilityRemark]:
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
    def verdict(self) -> str:
        """Whether it is usable, as a sentence."""
        if self.source == "observation" and self.usable:
            return "This observation is usable for answers from waits only: they have wide intervals."
        return f"This {self.source} is {'' if self.usable else 'not '}usable."

    @property
    def sentences(self) -> list[str]:
        """The verdict, then each remark with its remedy, a line each."""
        return [self.verdict, *(f"{capitalized(remark.reason)}: {remark.fix}." for remark in self.ordered)]


def replay_and_judge(recording: Path) -> Usability:
    """Replay a recording and judge it; one that cannot be replayed is not usable."""
    try:
        return judge_usability(Predictor.open(recording))
    except TierwiseError as error:
        return usability_without_replay(error)


def usability_without_replay(error: TierwiseError) -> Usability:
    """The verdict on a recording that could not be replayed."""
    return Usability(remarks=[_blocking(error.message, error.fix)])


def judge_usability(predictor: Predictor) -> Usability:
    """Judge a recording by its metadata and by the result of its replay."""
    about = predictor.about
    remarks = [
        *([] if predictor.run.from_waits else _of_contradictions(about)),
        *_of_size(predictor),
        *_of_disturbance(about),
        *_of_limits(predictor),
        *_of_contents(predictor),
        *_of_replay(predictor),
    ]
    return Usability(remarks=remarks, source="observation" if predictor.run.from_waits else "recording")


def _of_contradictions(about: RecordingMetadata) -> Iterator[UsabilityRemark]:
    """Fields of ``about.json`` that no recorder writes together: somebody has changed them."""
    cost, wrong = about.cost, list[str]()
    if about.bursts_s > _MOST_OVER * about.duration_s:
        wrong.append(f"bursts take {about.bursts_s:,.3g} s, and duration_s is {about.duration_s:,.3g}")
    elif about.bursts_span_s > _MOST_SPAN * about.duration_s:
        wrong.append(f"bursts span {about.bursts_span_s:,.3g} s, and duration_s is {about.duration_s:,.3g}")
    if (about.transactions or 0) > _MOST_PER_S * about.duration_s:
        wrong.append(f"transactions is {about.transactions:,}, and duration_s is {about.duration_s:,.3g}")
    if any(earlier.end_ns > later.start_ns for earlier, later in pairwise(about.bursts)):
        wrong.append("bursts overlap")
    if cost is not None:
        ratios = {"rate_ratio": (cost.rate_ratio_low, cost.rate_ratio, cost.rate_ratio_high)}
        if cost.knows_cpu:
            ratios["cpu_ratio"] = (cost.cpu_ratio_low, cost.cpu_ratio, cost.cpu_ratio_high)
        for name, (low, ratio, high) in ratios.items():
            if not 0 <= low <= ratio <= high > 0:
                wrong.append(f"cost.{name} does not lie in its interval, or is not above 0")
            elif low > _MOST_COST_RATIO or high < 1 / _MOST_COST_RATIO:
                wrong.append(f"cost.{name} is {ratio:.3g}, which no recording costs")
    if about.machine.memory_bytes < LEAST_MEMORY_BYTES:
        wrong.append(f"machine.memory_bytes is {about.machine.memory_bytes}")
    for field in wrong:
        yield _blocking(
            f"about.json contradicts itself: {field}",
            "copy the recording again from where it was made, or record again",
        )


def _of_size(predictor: Predictor) -> Iterator[UsabilityRemark]:
    work, unit = predictor.work, predictor.run.unit
    seen = work.turns if unit == "requests" else work.transactions
    if seen >= FEWEST_UNITS or (work.once and predictor.about.is_whole):
        return
    if work.once and seen <= work.sessions:  # which a job of one statement cannot be told from
        yield _hint(
            "the bursts are a sample of work that is done once, so times are of the sample",
            "read how many times as fast it gets, or record with --duty 1 from its start to its end",
        )
        return
    longer = f"at least {math.ceil(FEWEST_UNITS / max(seen, 1))} times as long"
    reason = f"{seen} {unit} were seen"
    if work.observed.sliced:  # the number is of slices of time
        reason, longer = "no request and no commit was seen", "while the sessions work, for longer"
    once = "; a job that is done once, with --duty 1 from its start to its end" if work.once else ""
    yield _blocking(
        f"{reason}, {FEWEST_UNITS} are needed",
        "observe longer" if predictor.run.from_waits else f"record {longer}, or with a greater --duty{once}",
    )


def _of_disturbance(about: RecordingMetadata) -> Iterator[UsabilityRemark]:
    lost, taken = about.losses.lost_events, about.losses.recorded_events
    share = lost / max(lost + taken, 1)
    if share > MOST_LOST_SHARE:
        yield _blocking(
            f"the kernel dropped {percent_text(share)} of the events", "record with a shorter --burst"
        )
    foreign = about.foreign_cpu_share
    if foreign > MOST_FOREIGN_CPU_SHARE:
        yield _blocking(
            f"other programs used {percent_text(foreign)} of the processors", f"stop {_programs(about)}"
        )
    stolen = about.stolen_cpu_share
    if stolen > MOST_STOLEN_CPU_SHARE:
        blocks = stolen > _MOST_STOLEN_IF_USABLE
        yield UsabilityRemark(
            reason=f"the hypervisor gave {percent_text(stolen)} of the processors to other machines",
            fix="record at another hour"
            + ("" if blocks else ", or expect rates and times of a slower machine"),
            blocks=blocks,
        )
    if about.cost is not None and about.cost.rate_ratio_high < 1 - MOST_COST:
        yield _hint(
            f"recording cost {percent_text(1 - about.cost.rate_ratio)} of the rate within bursts",
            "expect wider errors, or record with fewer clients",
        )
    elif about.cost is not None and about.cost.rate_ratio_low > 0 and not about.cost.is_known:
        yield _hint(
            "the bursts do not tell what recording cost: predictions start from the rate within them",
            "record longer, or expect a server that uses all cores to be some 10\u00a0% faster",
        )


def _of_limits(predictor: Predictor) -> Iterator[UsabilityRemark]:
    """What limits a server that replays do not know: they take waits for a quota for those for busy cores."""
    machine, waits = predictor.about.machine, predictor.work.observed.shares.get("runnable", 0.0)
    if machine.core_limit is not None and waits > _MOST_WAITS_FOR_CORES:
        yield _hint(
            f"sessions waited for a core in {percent_text(waits)} of their time, and the server may use "
            f"{machine.core_limit:g} of {machine.cores}",
            "raise the quota of its control group or its affinity before you buy anything, and record again",
        )
    if _core.STANDBY in predictor.as_recorded.warnings:
        yield _hint(
            _core.STANDBY.partition(", which")[0],
            "see that it keeps up with its primary before you move a file to a slower device",
        )
    if machine.io_limits:
        yield _hint(
            f"a control group allows the server {join_words(machine.io_limits)} of a device of its files: "
            "answers leave waits for that out",
            "raise the limit before you move a file, and record again",
        )


def _programs(about: RecordingMetadata) -> str:
    """The programs that used most of the processors, with pids and shares, and what to do instead."""
    named = [
        f"{program.program} (pid {', '.join(map(str, program.pids))}: {percent_text(program.cpu_share)})"
        for program in about.foreign_programs[:_MOST_PROGRAMS]
    ]
    instead = "while recording, or run the load from another machine"
    return f"{', '.join(named)} {instead}" if named else f"them {instead} (their names were not recorded)"


def _of_contents(predictor: Predictor) -> Iterator[UsabilityRemark]:
    about, work = predictor.about, predictor.work
    log_bytes = about.counters.get("log_bytes", 0)
    if log_bytes > _WRITTEN_LOG_BYTES and Role.LOG not in work.footprints:
        yield _blocking(
            f"the engine wrote {log_bytes / 1e6:,.0f} MB of log, but no file of the log was seen",
            "give --rules that name the log's files",
        )
    if work.transactions == 0:
        yield _hint(
            "the events do not show where transactions end, so rates count requests",
            "record with --dsn, or read the rates as requests",
        )
    if predictor.run.unit == "slices":
        yield _hint(
            "the events show hardly a request or a commit, so rates count slices of 10 ms of work",
            "read how many times as fast it gets, not the rates",
        )
    yield from _of_roles(work)
    yield from _of_mysql(about, work)
    counted = count_factor(about, work)
    who, most = ("engine", MOST_COUNT_FACTOR) if about.counters else ("client", _MOST_COUNT_FACTOR_OF_CLIENTS)
    if counted is not None and not 1 / most <= counted <= most:
        times = f"{counted:,.0f}" if counted >= 10 else f"{counted:.2g}"
        yield _blocking(
            f"the {who} counted {times} times the transactions that the events show",
            "see that the DSN is of the recorded server, and record while the load is steady",
        )
        return
    factor = counted_to_shown_ratio(about, work)
    if factor is not None and abs(factor - 1) > MOST_COUNTER_DIFFERENCE:
        yield _hint(
            f"the events show {1 / factor:.2f} times the transactions that were counted",
            "record longer: bursts differ by as much among themselves, so that rates follow the events",
        )


def _of_roles(work: WorkSummary) -> Iterator[UsabilityRemark]:
    if work.from_waits:
        return
    if not work.footprints:
        yield _blocking(
            "no file of a database was seen: the recorded program is a client, or of another engine",
            "record the server itself with --pid, or give --rules of its engine",
        )
    for file in work.unassigned:
        share = max((file.flush_share, "flushes"), (file.wait_share, "waits for files"))
        like = ", which is written like a log," if file.is_like_log else ""
        role = Role.LOG if file.is_like_log else Role.DATA
        yield _blocking(
            f"{file.path}{like} takes {percent_text(share[0])} of the {share[1]} and has no role, "
            "so that predictions leave it out",
            f"record again with --role {file.path}={role}, or the role that it has",
        )


def _of_mysql(about: RecordingMetadata, work: WorkSummary) -> Iterator[UsabilityRemark]:
    """What no model has: with 4 sessions, replays wrote the binary log of MySQL 8.0.46 4 times too often."""
    if about.engine != "mysql":
        return
    if sum(work.observed.shares.get(part, 0.0) for part in LOG_PARTS) > _FEW_WAITS:
        yield _blocking(
            "how commits of MySQL share flushes of its logs is not modelled",
            "read the waits that tierwise profile shows, and try a move before you rely on it",
        )
    elif work.once and work.turns >= FEWEST_UNITS:
        yield _blocking(
            "MySQL reports changes of sessions in its replies, which hides where transactions end",
            "SET GLOBAL session_track_schema = OFF, GLOBAL session_track_system_variables = ''; have the "
            "clients connect again, and record again",
        )


def _of_replay(predictor: Predictor) -> Iterator[UsabilityRemark]:
    run = predictor.run
    if abs(run.error) > MOST_REPRODUCTION_ERROR:
        model = "the coarse model of" if run.from_waits else "replaying"
        yield UsabilityRemark(
            reason=f"{model} the recorded run gives {significant_text(run.reproduced_rate_per_s)} {run.unit} "
            f"a second where {significant_text(run.rate_per_s)} were recorded: "
            f"{signed_percent_text(run.error)}",
            fix="record the job again, while nothing else runs"
            if predictor.work.once
            else "record longer, while nothing else runs and the load is steady",
            blocks=not run.from_waits,
        )
    cost = predictor.about.cost
    excess = predictor.replayer.cpu_scale * (cost.cpu_ratio if cost is not None and cost.knows_cpu else 1.0)
    if not 1 / MOST_CPU_EXCESS <= excess <= MOST_CPU_EXCESS:
        yield _hint(
            f"the replay meets the recorded rate with {excess:.2g} times the measured processor time: "
            "the sessions waited for something that it lacks",
            "expect answers for other devices to be off by as much",
        )
