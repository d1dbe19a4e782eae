"""Logs packed on few devices: each pack is tried by a joint replay, on recordings opened as needed.

First fit by descending busy share, a heuristic for bin packing (Johnson and others, *Worst-case performance
bounds for simple one-dimensional packing algorithms*, 1974). The replay decides whether a log fits, no sum of
sizes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from tierwise.advise import PaymentTerms, PlacementCosts
from tierwise.advise.costs import parse_percentage
from tierwise.cluster.remote import local_recording_copy
from tierwise.device_models.profiles import DeviceProfile
from tierwise.fleet.database_options import FleetOption, NewLogDevice
from tierwise.fleet.fleet_databases import RecordingLocation
from tierwise.fleet.knapsack import Knapsack
from tierwise.fleet.records import (
    FleetAdvice,
    FleetDatabase,
    FleetSharing,
    SeparateLog,
    SharedDatabase,
    SharedDevice,
)
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import np
from tierwise.model.numbers import percent_text
from tierwise.model.placement import Role
from tierwise.model.units import money_sum
from tierwise.predict import Predictor, Scenario, predict_together
from tierwise.predict.model_error import ModelError
from tierwise.predict.named_devices import using_profiles


class JointReplays:
    """Replays databases together; those used last stay open."""

    def __init__(
        self,
        recordings: Sequence[RecordingLocation],
        *,
        most_open: int,
        seeds: int,
        fresh: bool = False,
        profiles: Sequence[DeviceProfile] = (),
        model_error: ModelError | None = None,
    ) -> None:
        self._uris: Mapping[str, str] = {recording.name: recording.uri for recording in recordings}
        self._most_open, self._seeds, self._fresh = most_open, seeds, fresh
        self._profiles, self._model_error = profiles, model_error
        self._open: OrderedDict[str, Predictor] = OrderedDict()

    def __call__(self, members: Sequence[tuple[FleetDatabase, FleetOption]]) -> list[SharedDatabase]:
        """The figures of each database with the device of its log shared by all."""
        with using_profiles(self._profiles):
            predictors = {database.name: self._predictor(database.name) for database, _ in members}
            scenarios = {database.name: _scenario(option) for database, option in members}
            answers = predict_together(predictors, scenarios, seeds=self._seeds)
        each_roles = [option.log_device.roles if option.log_device else [] for _, option in members]
        return [
            SharedDatabase(
                database=answer.database,
                roles=roles,
                unit=answer.together.unit,
                rate_alone_per_s=answer.alone.rate_per_s,
                rate_per_s=answer.together.rate_per_s,
                kept=answer.kept,
                p99_alone_us=answer.alone.p99_us,
                p99_us=answer.together.p99_us,
            )
            for answer, roles in zip(answers, each_roles, strict=True)
        ]

    def _predictor(self, name: str) -> Predictor:
        if name not in self._open:
            while len(self._open) >= self._most_open:
                self._open.popitem(last=False)
            with local_recording_copy(self._uris[name]) as folder:
                predictor = Predictor.open(
                    folder, seeds=self._seeds, model_error=self._model_error, fresh=self._fresh
                )
            predictor.replayer.remember()
            self._open[name] = predictor
        self._open.move_to_end(name)
        return self._open[name]


def _scenario(option: FleetOption) -> Scenario:
    """The placement of an option, with the log's device as one that others may share."""
    log = option.placement[Role.LOG]
    places = {role: f"{log}#1" if device == log else device for role, device in option.placement.items()}
    return Scenario(placement={role.value: device for role, device in places.items()})


MOST_TRIES = 3
"""Joint replays in which one database is tried at most."""
_LEAST_SAVED = 1.0
"""Money a month that each further log must save, in the currency of the prices: sharing has a risk."""


class SharedLogReplay(Protocol):
    """Replays databases, each with an option, whose logs share one device."""

    def __call__(self, members: Sequence[tuple[FleetDatabase, FleetOption]]) -> list[SharedDatabase]:
        """The figures of each, in order."""


@dataclass(frozen=True)
class SharingLimits:
    """What sharing may cost.

    Attributes:
        least_kept: share of its rate that each database keeps at least, under every seed.
        most_databases: most databases on one device.
    """

    least_kept: float = 0.9
    most_databases: int = 4

    @classmethod
    def parse(cls, loss: str = "", most_databases: int | None = None) -> Self:
        """Read the rate that a database may lose, as ``10%``; empty and ``None`` are the defaults.

        Raises:
            TierwiseError: no percentage below 100.
        """
        lost = parse_percentage(loss, "--share-loss") if loss else 1 - cls.least_kept
        if lost >= 1:
            raise TierwiseError(f"--share-loss: {loss} leaves nothing", "write for example 10%")
        return cls(1 - lost, most_databases or cls.most_databases)


@dataclass
class Pack:
    """One device with logs.

    Attributes:
        device: full name of its kind.
        members: index of each database -> that of its option.
        figures: of each member, in order; empty for a single one, which was not replayed.
    """

    device: str
    members: dict[int, int]
    figures: list[SharedDatabase] = field(default_factory=list)


class Packing:
    """Packs that grow one database at a time."""

    def __init__(
        self,
        databases: Sequence[FleetDatabase],
        costs: PlacementCosts,
        together: SharedLogReplay,
        limits: SharingLimits,
    ) -> None:
        self._databases, self._costs, self._together = databases, costs, together
        self.limits = limits
        self.packs: list[Pack] = []
        self.reasons: dict[tuple[int, str], str] = {}
        """Index of a database, device -> why it shares none of that kind, from the last try."""
        self.replays = 0
        self._tries: dict[int, int] = {}
        self._refused: list[frozenset[tuple[int, int]]] = []

    @property
    def shared(self) -> dict[int, Pack]:
        """The pack of each database that shares a device."""
        return {number: pack for pack in self.packs if len(pack.members) > 1 for number in pack.members}

    @property
    def saved_per_month(self) -> float:
        """What all packs save over a device for each member."""
        return money_sum(self.separate_cost(pack.members) - self.cost(pack.members) for pack in self.packs)

    def begin(self, chosen: Sequence[int]) -> None:
        """Pack the logs that a set moves; a database in a pack of several stays in it."""
        self.packs = [pack for pack in self.packs if len(pack.members) > 1]
        loads = {number: self.log_device(number, option) for number, option in enumerate(chosen)}
        placed = [(number, load) for number, load in loads.items() if load and number not in self.shared]
        for number, load in sorted(placed, key=lambda pair: -pair[1].busy_share):
            if not self.join(number, chosen[number]):
                self.packs.append(Pack(load.device, {number: chosen[number]}))

    def join(
        self, number: int, option: int, *, most_cost: float = float("inf"), least_gain: float = -float("inf")
    ) -> bool:
        """Add a database to the first pack in which every member keeps what it must.

        Args:
            most_cost: most that the device may cost more than it does without this log.
            least_gain: least that the pack must gain more than it does without this database.
        """
        load = self.log_device(number, option)
        assert load is not None, "only options that move the log are packed"
        for pack in self.packs:
            if pack.device != load.device or number in pack.members:
                continue
            members = {**pack.members, number: option}
            reason = self._problem(members) or self._cost_problem(pack, members, most_cost)
            if reason is None:
                reason, logs = self._tried(number, members)
                if (
                    reason is None
                    and self.gain(members, logs) - self.gain(pack.members, pack.figures) > least_gain
                ):
                    pack.members, pack.figures = members, logs
                    return True
                reason = reason or "the others would lose more than it gains"
            self.reasons[number, load.device] = reason
        return False

    def leave_single(self, number: int) -> None:
        """Give up the device that a database had to itself."""
        self.packs = [pack for pack in self.packs if set(pack.members) != {number}]

    def log_device(self, number: int, option: int) -> NewLogDevice | None:
        """The new device of the log, if an option moves it."""
        return self._databases[number].options[option].log_device

    def size_bytes(self, members: Mapping[int, int]) -> int:
        """Of the recorded files on their device."""
        return sum(load.size_bytes for load in self._loads(members))

    def cost(self, members: Mapping[int, int]) -> float:
        """Of one device for all: room for the sum of their files, worn by the sum of their writes."""
        loads = self._loads(members)
        written = sum(load.written_bytes_per_s for load in loads)
        return self._costs.device_bill(loads[0].device, self.size_bytes(members), written).per_month

    def separate_cost(self, members: Mapping[int, int]) -> float:
        """Of a device for each."""
        return money_sum(self.cost({number: option}) for number, option in members.items())

    def gain(self, members: Mapping[int, int], logs: Sequence[SharedDatabase]) -> float:
        """Of the members, by importance, with what sharing costs them."""
        kept = [log.kept.value for log in logs] or [1.0] * len(members)
        each = [(self._databases[number], option) for number, option in members.items()]
        return sum(
            database.importance * (1 - 1 / (database.options[option].counted_speedup * share))
            for (database, option), share in zip(each, kept, strict=True)
        )

    def _loads(self, members: Mapping[int, int]) -> list[NewLogDevice]:
        return [load for number, option in members.items() if (load := self.log_device(number, option))]

    def _problem(self, members: Mapping[int, int]) -> str | None:
        """Why these cannot share, if that needs no replay."""
        for number, option in members.items():
            database, load = self._databases[number], self.log_device(number, option)
            if load and load.obstacle:
                return f"{database.name}: {load.obstacle}"
            if database.options[option].verdict not in (None, "reached"):
                return f"the p99 of {database.name} is not surely reached even on a device of its own"
        if len(members) > self.limits.most_databases:
            return f"a device takes {self.limits.most_databases} databases at most"
        device = self._loads(members)[0].device
        if not self._costs.holds(device, self.size_bytes(members)):
            return "the device is too small for a further log"
        return None

    def _cost_problem(self, pack: Pack, members: Mapping[int, int], most_cost: float) -> str | None:
        more = self.cost(members) - self.cost(pack.members)
        own = self.separate_cost(members) - self.separate_cost(pack.members)
        if own - more < _LEAST_SAVED:
            return "sharing saves next to nothing, since the device is billed by size or by wear"
        return "the budget does not pay for its part" if money_sum((more, -most_cost)) > 0 else None

    def _tried(self, number: int, members: Mapping[int, int]) -> tuple[str | None, list[SharedDatabase]]:
        """Replay a pack: why it is refused, if it is, and the figures of its members."""
        asked = frozenset(members.items())
        if any(known <= asked for known in self._refused):
            device = self._loads(members)[0].device
            return self.reasons.get((number, device), "a smaller set of these was refused"), []
        if self._tries.get(number, 0) >= MOST_TRIES:
            return f"it was refused on {MOST_TRIES} devices", []
        self._tries[number] = self._tries.get(number, 0) + 1
        self.replays += 1
        each = [
            (self._databases[name], self._databases[name].options[option]) for name, option in members.items()
        ]
        try:
            logs = self._together(each)
        except TierwiseError as error:
            reason: str | None = error.message
        else:
            reason = next(filter(None, map(self._loss, each, logs)), None)
        if reason:
            self._refused.append(asked)
            return reason, []
        return None, logs

    def _loss(self, member: tuple[FleetDatabase, FleetOption], log: SharedDatabase) -> str | None:
        """Why a member does not keep what it must."""
        (database, option), bound_us = member, member[0].must_have_p99_us
        if bound_us is not None and (log.p99_us is None or log.p99_us.high > bound_us):
            return f"{database.name} would not surely reach its p99"
        if log.kept.low < self.limits.least_kept:
            return f"{database.name} would keep {percent_text(log.kept.low)} of its rate"
        if option.speedup.value >= 1 > option.speedup.value * log.kept.value:
            return f"{database.name} would be slower than recorded"
        return None


_ROUNDS = 4
"""Sets that are packed at most: each later one spends what the sharing of the one before saved."""
_LEAST_GAIN = 1e-9
"""More gain than the rounding of sums."""


def advice_with_shared_logs(
    advice: FleetAdvice, terms: PaymentTerms, together: SharedLogReplay, limits: SharingLimits
) -> FleetAdvice:
    """The advice, with the logs that it moves packed on shared devices.

    In each round, the new devices of logs in the set are packed, each with all that its database puts on it.
    Then databases outside join these devices at what they cost more with a further log, the greatest gain
    first. The next round has the best set for the budget and all that is saved. Databases that share a device
    keep their option and only get further neighbours, so no round spends more than the budget.
    """
    databases, budget = advice.databases, advice.budget_per_month
    packing = Packing(databases, PlacementCosts({}, terms), together, limits)
    chosen = [database.chosen for database in databases]
    for left in reversed(range(_ROUNDS)):
        packing.begin(chosen)
        if budget is None:
            break
        _grow_packs(packing, databases, chosen, budget)
        better = _best_set(packing, databases, chosen, budget)
        if not left or _set_gain(databases, better) <= _set_gain(databases, chosen) + _LEAST_GAIN:
            break
        chosen = better
    return advice.changed(sharing=_record(advice, packing, chosen))


def _grow_packs(
    packing: Packing, databases: Sequence[FleetDatabase], chosen: list[int], budget: float
) -> None:
    """Let databases join packs, the greatest gain first; ``chosen`` then has their options."""
    candidates = sorted(
        (
            (database.importance * (option.gain - database.options[chosen[number]].gain), number, index)
            for number, database in enumerate(databases)
            for index, option in enumerate(database.options)
            if option.log_device
        ),
        key=lambda entry: (-entry[0], entry[1:]),
    )
    shared, left = packing.shared, budget - _set_cost(packing, databases, chosen)
    for _, number, index in candidates:
        database, now = databases[number], databases[number].options[chosen[number]]
        more = database.importance * (database.options[index].gain - now.gain)
        if more <= _LEAST_GAIN or number in shared:
            continue
        other = (
            database.options[index].cost_per_month
            - packing.separate_cost({number: index})
            - now.cost_per_month
        )
        own_gain = database.importance * now.gain
        if packing.join(number, index, most_cost=left - other, least_gain=own_gain):
            packing.leave_single(number)
            chosen[number] = index
            shared, left = packing.shared, budget - _set_cost(packing, databases, chosen)


def _best_set(
    packing: Packing, databases: Sequence[FleetDatabase], chosen: Sequence[int], budget: float
) -> list[int]:
    """The best set for the budget and what is saved, with the databases that share a device as they are."""
    shared = packing.shared
    allowed = [
        [chosen[number]] if number in shared else list(range(len(database.options)))
        for number, database in enumerate(databases)
    ]
    rows = [
        [database.options[index] for index in each] for database, each in zip(databases, allowed, strict=True)
    ]
    gains = [
        database.importance * option.gain
        for database, each in zip(databases, rows, strict=True)
        for option in each
    ]
    knapsack = Knapsack([[option.cost_per_month for option in each] for each in rows])
    best = knapsack.best(np.array(gains), money_sum((budget, packing.saved_per_month)))
    return [each[index] for each, index in zip(allowed, best.options, strict=True)]


def _set_gain(databases: Sequence[FleetDatabase], chosen: Sequence[int]) -> float:
    return sum(
        database.importance * database.options[index].gain
        for database, index in zip(databases, chosen, strict=True)
    )


def _set_cost(packing: Packing, databases: Sequence[FleetDatabase], chosen: Sequence[int]) -> float:
    paid = (database.options[index].cost_per_month for database, index in zip(databases, chosen, strict=True))
    return money_sum((*paid, -packing.saved_per_month))


def _record(advice: FleetAdvice, packing: Packing, chosen: Sequence[int]) -> FleetSharing:
    databases, shared = advice.databases, packing.shared
    lost = sum(
        packing.gain(pack.members, []) - packing.gain(pack.members, pack.figures) for pack in packing.packs
    )
    gain = _set_gain(databases, chosen) - lost
    before = [move for database in databases for move in database.moves(database.chosen)]
    after = [
        move for database, index in zip(databases, chosen, strict=True) for move in database.moves(index)
    ]
    separate = [
        SeparateLog(
            database=database.name,
            device=load.device,
            reason=packing.reasons.get(
                (number, load.device), "no other log on a device of this kind shares it"
            ),
        )
        for number, database in enumerate(databases)
        if (load := packing.log_device(number, chosen[number])) and number not in shared
    ]
    return FleetSharing(
        least_kept=packing.limits.least_kept,
        most_databases=packing.limits.most_databases,
        devices=_devices(packing),
        separate=separate,
        saved_per_month=packing.saved_per_month,
        cost_per_month=_set_cost(packing, databases, chosen),
        gain=gain,
        gain_share=gain / advice.full_gain if advice.full_gain > 0 else None,
        begun=[move for move in after if move not in before],
        ended=[move for move in before if move not in after],
        replays=packing.replays,
    )


def _devices(packing: Packing) -> list[SharedDevice]:
    counts: dict[str, int] = {}
    devices = []
    for pack in packing.packs:
        if len(pack.members) < 2:
            continue
        counts[pack.device] = counts.get(pack.device, 0) + 1
        cost, separate = packing.cost(pack.members), packing.separate_cost(pack.members)
        devices.append(
            SharedDevice(
                name=f"{pack.device}#{counts[pack.device]}",
                databases=pack.figures,
                size_bytes=packing.size_bytes(pack.members),
                cost_per_month=cost,
                separate_cost_per_month=separate,
                saved_per_month=separate - cost,
            )
        )
    return devices
