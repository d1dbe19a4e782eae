"""The options of one database, placements with gain and price: a pure function from a task to its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from tierwise.advise import Goal, PaymentTerms, PlacementCosts, PricedPlacement
from tierwise.advise.costs import billing_notes
from tierwise.advise.priced_placement import GoalVerdict
from tierwise.advise.search import PlacementSearch
from tierwise.advise.wear import write_rates_by_device
from tierwise.cluster.remote import local_recording_copy, require_same_recording
from tierwise.device_models.instances import instance_rent_per_month
from tierwise.device_models.profiles import DeviceProfile
from tierwise.fleet.fleet_databases import RecordingLocation, SkippedRecording
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.names import printable
from tierwise.model.placement import Role, price_order
from tierwise.predict import Estimate, Predictor, estimates
from tierwise.predict.model_error import ModelError
from tierwise.predict.named_devices import is_numbered, using_profiles
from tierwise.predict.predictor import SEEDS
from tierwise.predict.ranking import placement_simplicity
from tierwise.predict.simulator_output import CHANCE
from tierwise.predict.usability import judge_usability
from tierwise.recording import Day
from tierwise.results.measurements import StrictModel


@dataclass(frozen=True)
class DatabaseOptionsTask:
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
        checksum: :func:`~tierwise.cluster.remote.recording_fingerprint` of the recording, if one is due.
    """

    recording: RecordingLocation
    devices: tuple[str, ...]
    terms: PaymentTerms
    goal: Goal | None = None
    seeds: int = SEEDS
    fresh: bool = False
    profiles: tuple[DeviceProfile, ...] = ()
    model_error: ModelError | None = None
    checksum: str | None = None


class NewLogDevice(StrictModel):
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


class FleetOption(StrictModel):
    """A placement of one database, in figures."""

    placement: dict[Role, str]
    """Of the roles that are not where they were recorded; empty for the recorded placement."""
    taken_along: dict[Role, str] = {}
    """Roles with almost no I/O that move too, so that a recorded volume can be given up."""
    cost_per_month: float
    """More than is paid now; below 0 if it saves money."""
    speedup: Estimate
    """Rate over that of the recorded run."""
    told: bool = True
    """Whether it can be told from staying; if not, it is no gain, and may save money."""
    seed_half_width: float = 0.0
    """Half width of the part of that interval which is due to the simulator's seeds, on the logarithm."""
    most_speedup: float | None = None
    """Upper bound of the speed-up, from the recorded waits alone; null if there is none."""
    rate_per_s: Estimate | None = None
    """Transactions or requests each second."""
    p99_us: Estimate | None = None
    """99th percentile of the latency, in microseconds."""
    verdict: GoalVerdict | None = None
    """Whether it reaches the p99 that the database must have; null without one."""
    log_device: NewLogDevice | None = None
    """The device that the log moves to; null if it stays."""

    @property
    def counted_speedup(self) -> float:
        """The speed-up; 1 if it cannot be told from staying, or is slower by no more than chance explains.

        What saves money is then as good as staying, for less, and no better than a gain that can be told.
        """
        slower = self.speedup.value < 1 / (1 + CHANCE)
        return self.speedup.value if slower or (self.told and self.speedup.value > 1) else 1.0

    @property
    def gain(self) -> float:
        """Share of the time of a transaction that it saves: 1 - 1 / :attr:`counted_speedup`."""
        return 1 - 1 / self.counted_speedup


class DatabaseOptions(StrictModel):
    """The rows of one database."""

    name: str
    """Name of the database."""
    uri: str
    """Path or URI of its recording."""
    engine: str
    engine_version: str | None
    unit: str
    """What rates count."""
    recorded_run: str = ""
    """What tells a recorded run from others, also in a copy and a redacted one; empty if nothing does."""
    options: list[FleetOption]
    """The recorded placement, then the others, the cheapest first."""
    worth_per_month: float | None = None
    """Most that a gain may cost without a budget, as for ``advise``; null if there is no limit."""
    unusable: list[str] = []
    """Why its recording is not usable and what to do; empty if it is."""
    warnings: list[str] = []
    notes: list[str] = []


def database_options(task: DatabaseOptionsTask) -> DatabaseOptions | SkippedRecording:
    """The options of one database; a recording that cannot be used is left out, with the reason."""
    where = task.recording
    try:
        with using_profiles(task.profiles), local_recording_copy(where.uri) as folder:
            require_same_recording(where.uri, task.checksum)
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
    return SkippedRecording(name=where.name, uri=printable(where.uri), problem=printable(problem), fix=fix)


def _options(task: DatabaseOptionsTask, predictor: Predictor) -> DatabaseOptions:
    costs = PlacementCosts.of(predictor, task.terms)
    rent = instance_rent_per_month([], predictor.work.cores, costs.currency)
    search = PlacementSearch(predictor, task.devices, costs, rent_per_month=rent)
    about = predictor.about
    starts_ns = [burst.start_ns for burst in about.bursts[:3]]
    recorded, judged, run = search.staying, judge_usability(predictor), predictor.run
    others = [option for option in search.front(task.goal) if not option.stays and option.prediction.speedup]
    needed = [option for option in others if task.goal and search.serves(task.goal, option)]
    rungs = worthwhile_placements(search, [option for option in others if search.may_be_recommended(option)])
    kept = [option for option in others if option in rungs or option in needed]
    answers = [option.prediction for option in (recorded, *kept)]
    return DatabaseOptions(
        name=task.recording.name,
        uri=printable(task.recording.uri),
        engine=run.engine,
        engine_version=run.engine_version,
        unit=run.unit,
        recorded_run=" ".join([run.engine, about.started_at, *map(str, starts_ns)]) if starts_ns else "",
        options=[
            _row(search, option, task.goal, costs)
            for option in (recorded, *sorted(kept, key=lambda option: option.cost_per_month))
        ],
        worth_per_month=search.worth_per_month if math.isfinite(search.worth_per_month) else None,
        unusable=[f"{remark.reason}: {remark.fix}" for remark in judged.remarks if remark.blocks],
        warnings=list(dict.fromkeys(warning for answer in answers for warning in answer.warnings)),
        notes=[*search.ranking.notes, *billing_notes(task.devices, task.terms, costs.volumes, run)],
    )


def worthwhile_placements(
    search: PlacementSearch, others: Iterable[PricedPlacement]
) -> list[PricedPlacement]:
    """The options that ``advise`` recommends for some amount of money, without staying.

    Each is the cheapest that is as good as the fastest for that money. Where one for that money can be told
    from staying, it can be too.
    """
    rising = sorted([search.staying, *others], key=_cheapest_first)
    kept: list[PricedPlacement] = []
    affordable: list[PricedPlacement] = []
    for _, of_one_cost in groupby(rising, key=lambda option: option.cost_per_month):
        affordable += of_one_cost
        fastest = max(affordable, key=lambda option: (search.is_told(option), _speedup(option)))
        best = next(option for option in affordable if search.is_enough(option, fastest))
        if not best.stays and best not in kept:
            kept.append(best)
    return kept


def _cheapest_first(option: PricedPlacement) -> tuple[bool, float, int, int, float]:
    """Sort key of :func:`price_order`."""
    return price_order(option.cost_per_month, *placement_simplicity(option.placement), _speedup(option))


def _speedup(option: PricedPlacement) -> float:
    return option.prediction.speedup.value if option.prediction.speedup else 0.0


def _row(
    search: PlacementSearch, option: PricedPlacement, goal: Goal | None, costs: PlacementCosts
) -> FleetOption:
    answer, step = option.prediction, search.staying.step_to(option)
    assert answer.speedup is not None, "options without a figure were left out"
    return FleetOption(
        placement=option.placement,
        taken_along=option.taken_along,
        cost_per_month=option.cost_per_month,
        speedup=answer.speedup,
        told=search.is_told(option),
        seed_half_width=estimates.half_width(step) if step else 0.0,
        most_speedup=answer.bound.speedup if answer.bound else None,
        rate_per_s=answer.rate_per_s,
        p99_us=answer.p99_us,
        verdict=goal.verdict(answer) if goal else None,
        log_device=_log_device(option, costs),
    )


def _log_device(option: PricedPlacement, costs: PlacementCosts) -> NewLogDevice | None:
    device, loads = option.placement.get(Role.LOG), option.prediction.io
    if device is None:
        return None
    roles = [role for role, place in option.placement.items() if place == device]
    return NewLogDevice(
        device=device,
        roles=roles,
        size_bytes=option.size_bytes[device],
        busy_share=sum(loads[role].busy_share for role in roles if role in loads),
        written_bytes_per_s=write_rates_by_device(option.placement, costs.written)[device],
        obstacle=_obstacle(option),
    )


def _obstacle(option: PricedPlacement) -> str | None:
    if option.prediction.once:
        return "its work was done once, and work that is repeated is needed"
    if any(map(is_numbered, option.placement.values())):
        return "it is placed on a device with a number of its own"
    if option.prediction.from_waits:
        return "an observation over SQL has waits only, which cannot be replayed beside others"
    return None
