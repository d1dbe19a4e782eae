"""The options of one database, placements with gain and price: a pure function from a task to its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tierwise.advise import Costs, Goal, Option, Terms
from tierwise.advise.costs import billing_notes, written_by_device
from tierwise.advise.option import Verdict
from tierwise.advise.search import Search
from tierwise.cluster.remote import opened, require_same
from tierwise.device_models.instances import rent_per_month
from tierwise.device_models.profiles import Profile
from tierwise.fleet.catalogue import LeftOutRecording, RecordingAt
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.names import printable
from tierwise.model.placement import Role
from tierwise.predict import Estimate, Predictor, estimates
from tierwise.predict.devices import given, is_numbered
from tierwise.predict.model_error import ModelError
from tierwise.predict.predictor import SEEDS
from tierwise.predict.replayed import CHANCE
from tierwise.predict.usability import usability
from tierwise.recording import Day
from tierwise.results.measurements import Record


@dataclass(frozen=True)
class OptionsTask:
    """The work for one database.

    Attributes:
        recording: where its recording is.
        devices: full names of the candidate devices.
        terms: of payment.
        goal: a p99 that it must have, if any.
        seeds: runs of the simulator for each prediction.
        fresh: whether new devices are in their factory state.
        profiles: the user's own profiles among the devices.
        model_error: the error of predictions; the one calibrated on the host that works, if not given.
        checksum: :func:`~tierwise.cluster.remote.fingerprint` that the recording must have, if given.
    """

    recording: RecordingAt
    devices: tuple[str, ...]
    terms: Terms
    goal: Goal | None = None
    seeds: int = SEEDS
    fresh: bool = False
    profiles: tuple[Profile, ...] = ()
    model_error: ModelError | None = None
    checksum: str | None = None


class LogDevice(Record):
    """The new device of a log, and what the database puts on it."""

    device: str
    roles: list[Role]
    """Roles on it, the log among them; those taken along are not counted."""
    size_bytes: int
    """Of the files on it, as recorded; those taken along count."""
    busy_share: float
    """Sum over its roles of the share of time in which a request was under way."""
    written_bytes_per_s: float
    """At the recorded rate of work."""
    obstacle: str | None = None
    """Why the database cannot be replayed together with others; null if it can."""


class FleetOption(Record):
    """A placement of one database, in figures."""

    placement: dict[Role, str]
    """Of the roles that are not where they were recorded; empty for the recorded placement."""
    taken_along: dict[Role, str] = {}
    """Roles with almost no I/O that move too, so that a recorded volume can be given up."""
    cost_per_month: float
    """More than is paid now; below 0 if it saves money."""
    speedup: Estimate
    """Rate over that of the recorded run."""
    seed_half_width: float = 0.0
    """Half width of the part of that interval which is due to the simulator's seeds, on the logarithm."""
    most_speedup: float | None = None
    """Upper bound of the speed-up, from the recorded waits alone; null if there is none."""
    rate_per_s: Estimate | None = None
    """Transactions or requests each second."""
    p99_us: Estimate | None = None
    """99th percentile of the latency, in microseconds."""
    verdict: Verdict | None = None
    """Whether it reaches the p99 that the database must have; null without one."""
    log_device: LogDevice | None = None
    """The device that the log moves to; null if it stays."""

    @property
    def gain(self) -> float:
        """Share of the time of a transaction that it saves: 1 - 1 / speed-up; not below 0 if by chance alone.

        What saves money and is no slower, as far as can be told, is then as good as staying, for less.
        """
        slower = self.speedup.value < 1 / (1 + CHANCE)
        return 1 - 1 / (self.speedup.value if slower else max(self.speedup.value, 1.0))


class DatabaseOptions(Record):
    """The rows of one database."""

    name: str
    """Name of the database."""
    uri: str
    """Path or URI of its recording."""
    engine: str
    engine_version: str | None
    unit: str
    """What rates count."""
    options: list[FleetOption]
    """The recorded placement, then the others, the cheapest first."""
    worth_per_month: float | None = None
    """Most that a gain may cost without a budget, as for ``advise``; null if there is no limit."""
    unusable: list[str] = []
    """Why its recording is not usable and what to do; empty if it is."""
    warnings: list[str] = []
    notes: list[str] = []


def options_of(task: OptionsTask) -> DatabaseOptions | LeftOutRecording:
    """The options of one database; a recording that cannot be used is left out, with the reason."""
    where = task.recording
    try:
        with given(task.profiles), opened(where.uri) as folder:
            require_same(where.uri, task.checksum)
            if Day.is_at(folder):
                raise TierwiseError(f"{folder} holds recordings of a day", "name one of them")
            predictor = Predictor.open(
                folder, seeds=task.seeds, model_error=task.model_error, fresh=task.fresh
            )
            return _options(task, predictor)
    except HostError:
        raise
    except TierwiseError as error:
        problem, fix = error.message, error.fix
    except Exception as error:  # a defect met in one recording of many must not cost the other answers
        problem, fix = (
            f"defect of tierwise: {type(error).__name__}: {error}",
            "run tierwise advise on it alone",
        )
    return LeftOutRecording(name=where.name, uri=printable(where.uri), problem=printable(problem), fix=fix)


def _options(task: OptionsTask, predictor: Predictor) -> DatabaseOptions:
    costs = Costs.of(predictor, task.terms)
    rent = rent_per_month([], predictor.work.cores, costs.currency)
    search = Search(predictor, task.devices, costs, rent_per_month=rent)
    recorded, judged, run = search.staying, usability(predictor), predictor.run
    others = [option for option in search.front(task.goal) if not option.stays and option.prediction.speedup]
    needed = [
        option for option in others if task.goal and task.goal.verdict(option.prediction).endswith("reached")
    ]
    allowed = [option for option in others if search.may_be_recommended(option)]
    rungs = worthwhile(recorded, allowed)
    kept = [option for option in others if option in rungs or option in needed]
    answers = [option.prediction for option in (recorded, *kept)]
    return DatabaseOptions(
        name=task.recording.name,
        uri=printable(task.recording.uri),
        engine=run.engine,
        engine_version=run.engine_version,
        unit=run.unit,
        options=[
            _row(recorded, option, task.goal, costs)
            for option in (recorded, *sorted(kept, key=lambda option: option.cost_per_month))
        ],
        worth_per_month=search.worth_per_month if math.isfinite(search.worth_per_month) else None,
        unusable=[f"{remark.reason}: {remark.fix}" for remark in judged.remarks if remark.blocks],
        warnings=list(dict.fromkeys(warning for answer in answers for warning in answer.warnings)),
        notes=[*search.ranking.notes, *billing_notes(task.devices, task.terms, costs.volumes, run)],
    )


def worthwhile(recorded: Option, others: Iterable[Option]) -> list[Option]:
    """The options that ``advise`` recommends for some amount of money.

    Each is the cheapest as good as the fastest for that money. To stay is one of them, and left out.
    """
    rising = sorted([recorded, *others], key=lambda other: (other.cost_per_month, len(other.placement)))
    kept: list[Option] = []
    fastest: Option | None = None
    for option in rising:
        if fastest is None or _speedup(option) > _speedup(fastest):
            fastest = option
            best = next(other for other in rising if other.as_good_as(fastest))
            if not best.stays and best not in kept:
                kept.append(best)
    return kept


def _speedup(option: Option) -> float:
    return option.prediction.speedup.value if option.prediction.speedup else 0.0


def _row(recorded: Option, option: Option, goal: Goal | None, costs: Costs) -> FleetOption:
    answer, step = option.prediction, recorded.step_to(option)
    assert answer.speedup is not None, "options without a figure were left out"
    return FleetOption(
        placement=option.placement,
        taken_along=option.taken_along,
        cost_per_month=option.cost_per_month,
        speedup=answer.speedup,
        seed_half_width=estimates.half_width(step) if step else 0.0,
        most_speedup=answer.bound.speedup if answer.bound else None,
        rate_per_s=answer.rate_per_s,
        p99_us=answer.p99_us,
        verdict=goal.verdict(answer) if goal else None,
        log_device=_log_device(option, costs),
    )


def _log_device(option: Option, costs: Costs) -> LogDevice | None:
    device, loads = option.placement.get(Role.LOG), option.prediction.io
    if device is None:
        return None
    roles = [role for role, place in option.placement.items() if place == device]
    return LogDevice(
        device=device,
        roles=roles,
        size_bytes=option.size_bytes[device],
        busy_share=sum(loads[role].busy_share for role in roles if role in loads),
        written_bytes_per_s=written_by_device(option.placement, costs.written)[device],
        obstacle=_obstacle(option),
    )


def _obstacle(option: Option) -> str | None:
    if option.prediction.once:
        return "its work was done once, and work that is repeated is needed"
    if any(map(is_numbered, option.placement.values())):
        return "it is placed on a device with a number of its own"
    if option.prediction.from_waits:
        return "an observation over SQL has waits only, which cannot be replayed beside others"
    return None
