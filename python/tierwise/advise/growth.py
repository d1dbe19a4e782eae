"""Growth of data and load: what saturates first and at which factor, and the cheapest answer to that.

A resource saturates at the least factor at which more transactions arrive than complete while nothing else
limits them: the other recorded devices take no time, and cores are many. Sessions are so many that they do
not limit. Files and load grow alike (:mod:`tierwise.predict.scenario_machine`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from tierwise.advise.alternatives import rent_difference
from tierwise.advise.costs import (
    PaymentTerms,
    PlacementCosts,
    recorded_profiles,
    user_named_devices,
)
from tierwise.advise.wear import device_lifetime_months, write_rates_by_device
from tierwise.device_models.instances import CloudInstance, larger_instances
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role, price_order
from tierwise.predict import RECORDED, Predictor, Scenario
from tierwise.predict.answer import is_saturated
from tierwise.predict.inseparable_roles import role_units
from tierwise.predict.prediction import Refusal
from tierwise.predict.ranking import placement_simplicity, roles_by_load, scenario_with_placement
from tierwise.predict.replayer import SimulationRequest
from tierwise.predict.role_space import device_fill_sizes, split_roles
from tierwise.predict.scenario import MOST_CLIENTS
from tierwise.predict.scenario_machine import scenario_on_instance, scenario_with_growth
from tierwise.predict.time_savings import NO_TIME
from tierwise.results.measurements import StrictModel

What = Literal["device", "cores", "machine", "locks", "space", "wear"]
_FACTOR = re.compile(r"(\d+(?:\.\d+)?)\s*x?")
_MOST_FACTOR = 100.0
_HALVINGS = 6
"""Of the logarithm of the factor: 3 times are found to 2 %."""
_SESSIONS = 4
"""Sessions for each recorded one, times growth."""
_MANY = 8
"""Cores for each recorded one, times growth, that never limit."""
_MOST_CORES = 1024
_ALIKE = 1.05
"""Ratio of two factors up to which the machine is not told from the device behind it."""
_MOST_ANSWERS = 48
"""Placements that are tried at most as the answer to a device."""
_BATCH = 8
_MONTHS_PER_YEAR = 12


class GrowthLimit(StrictModel):
    """A resource and the growth at which it no longer suffices."""

    what: What
    """``device``: of the roles; ``cores``; ``machine``: its limits for all network volumes; ``locks``: waits
    that neither devices nor cores shorten; ``space`` and ``wear``: of the device of the roles."""
    roles: list[Role] = []
    """Of the files on the device."""
    factor: float | None
    """Growth at which it no longer suffices; 1 if it does not suffice as recorded; ``None`` if it suffices up
    to the growth that was asked for."""


class GrowthAnswer(StrictModel):
    """The cheapest answer to the first limit: a placement, cores or a machine; none if all are empty."""

    placement: dict[Role, str] = {}
    """Roles to move and their devices, for a device, its space or its wear; with the idle roles that move
    too, so that the rent of a recorded volume ends."""
    cores: int | None = None
    """Least number of cores that keep up."""
    instance: str | None = None
    """The cheapest machine with so many cores or with sufficient limits, of those named or of the family."""
    cost_per_month: float | None = None
    """More than is paid now, with files and writes grown; ``None`` if no price is known."""
    beyond_budget: bool = False
    """Whether that is more than the budget: no cheaper answer was found."""


class GrowthAdvice(StrictModel):
    """What breaks first when data and load grow."""

    factor: float
    """The growth that was asked for."""
    rate_per_s: float
    """Recorded rate of transactions: the load at a factor of 1."""
    keeps_up_to: float | None
    """Growth up to which the recorded placement keeps up in all; ``None`` if it does so to ``factor``."""
    limits: list[GrowthLimit]
    """Those that are reached first come first."""
    cores: int
    """As recorded."""
    answer: GrowthAnswer | None
    """To the first limit; ``None`` if none is reached."""
    split: list[Role] = []
    """Roles whose files lie on several devices: the space on these is not among the limits, since a recording
    does not tell how much of them lies on each."""

    @property
    def first(self) -> GrowthLimit | None:
        """The limit that is reached first; ``None`` if none is."""
        return next((limit for limit in self.limits if limit.factor is not None), None)


def parse_growth_factor(text: str) -> float:
    """Read ``3x`` or ``3``.

    Raises:
        TierwiseError: anything else, or a factor that is not above 1.
    """
    match = _FACTOR.fullmatch(text.strip())
    if not match or not 1 < float(match[1]) <= _MOST_FACTOR:
        raise TierwiseError(f"--grow: {text!r} is no factor above 1 and up to {_MOST_FACTOR:g}", "write 3x")
    return float(match[1])


@dataclass(frozen=True)
class _UngrownScenario:
    """A scenario but for its growth: what limits it."""

    placement: Mapping[Role, str]
    cores: int
    machine: Scenario


def advise_growth(
    predictor: Predictor,
    factor: float,
    devices: Sequence[str],
    terms: PaymentTerms,
    machine: Scenario,
    instances: Sequence[CloudInstance] = (),
    *,
    budget_per_month: float | None = None,
) -> GrowthAdvice:
    """What saturates between the recorded load and ``factor`` times it, and the cheapest answer to the first.

    Args:
        predictor: of the recording.
        factor: growth of data and load, above 1.
        devices: full names of the candidates.
        terms: of payment.
        machine: the limits of the machine, as of every placement of an advice; nothing without one.
        instances: the machine of the database, then others.
        budget_per_month: most that an answer may cost, which a dearer one is marked to be beyond.

    Raises:
        TierwiseError: the recording shows no rate of transactions, or work that is done once.
    """
    if predictor.work.from_waits:
        raise TierwiseError("--grow: waits do not tell what saturates", "leave it out, or use a recording")
    if predictor.work.once or predictor.run.unit != "transactions":
        raise TierwiseError(
            "--grow needs transactions at a rate: the recording shows none, or work that is done once",
            "record clients that go on, with --dsn where their transactions cannot be told",
        )
    found = _GrowthSearch(predictor, factor, devices, terms, machine, instances).growth()
    cost = found.answer.cost_per_month if found.answer else None
    if found.answer and cost is not None and budget_per_month is not None and cost > budget_per_month:
        return found.changed(answer=found.answer.changed(beyond_budget=True))
    return found


class _GrowthSearch:
    def __init__(
        self,
        predictor: Predictor,
        factor: float,
        devices: Sequence[str],
        terms: PaymentTerms,
        machine: Scenario,
        instances: Sequence[CloudInstance],
    ) -> None:
        self._predictor, self._factor, self._machine = predictor, factor, machine
        self._devices, self._instances = devices, instances
        self._terms = replace(terms, growth=max(terms.growth, factor - 1))
        self._costs = PlacementCosts.of(predictor, self._terms)
        self._costs.written = {role: rate * factor for role, rate in self._costs.written.items()}
        work = predictor.work
        self._cores = work.cores
        self._many = min(math.ceil(work.cores * factor * _MANY), _MOST_CORES)
        _, self._units = roles_by_load(predictor)
        placed = [role for unit in self._units for role in unit]
        self._busy = [
            busy for device in work.devices if (busy := [role for role in device.roles if role in placed])
        ]
        self._placed = placed
        self._split = split_roles(predictor.about) & self._costs.spaces.keys()

    def growth(self) -> GrowthAdvice:
        cases: dict[str, _UngrownScenario] = {"all": _UngrownScenario({}, self._cores, self._machine)}
        for number, roles in enumerate(self._busy):
            cases[f"device {number}"] = self._alone(roles)
        cases["cores"] = _UngrownScenario(self._free(), self._cores, Scenario())
        if self._machine.instance:
            cases["machine"] = _UngrownScenario({}, self._many, self._machine)
        cases["locks"] = _UngrownScenario(self._free(), self._many, Scenario())
        factors = self._saturating(cases)
        limits = [
            GrowthLimit(what="device", roles=roles, factor=factors[f"device {number}"])
            for number, roles in enumerate(self._busy)
        ]
        limits.append(GrowthLimit(what="cores", factor=factors["cores"]))
        limits += self._of_machine(factors.get("machine"), limits)
        if factors["locks"] is not None:
            limits.append(GrowthLimit(what="locks", factor=factors["locks"]))
        limits += [*self._space(), *self._wear()]
        limits.sort(key=lambda limit: math.inf if limit.factor is None else limit.factor)
        first = next((limit for limit in limits if limit.factor is not None), None)
        return GrowthAdvice(
            factor=self._factor,
            rate_per_s=self._predictor.run.rate_per_s,
            keeps_up_to=factors["all"],
            limits=limits,
            cores=self._cores,
            answer=self._answer(first, locks=factors["locks"] is not None) if first else None,
            split=[role for role in Role if role in self._split],
        )

    def _free(self, roles: Sequence[Role] = ()) -> dict[Role, str]:
        """All roles with I/O on a device that takes no time, but for some."""
        return {role: NO_TIME for role in self._placed if role not in roles}

    def _alone(self, roles: Sequence[Role]) -> _UngrownScenario:
        return _UngrownScenario(self._free(roles), self._many, Scenario())

    def _saturating(self, cases: Mapping[str, _UngrownScenario]) -> dict[str, float | None]:
        """The least factor at which each case saturates, by bisection; ``None`` if it keeps up."""
        names = list(cases)
        at_ends = self._saturated([(cases[name], factor) for name in names for factor in (1.0, self._factor)])
        limits: dict[str, float | None] = {}
        between: dict[str, tuple[float, float]] = {}
        for number, name in enumerate(names):
            now, then = at_ends[2 * number : 2 * number + 2]
            limits[name] = 1.0 if now else None
            if then and not now:
                between[name] = (1.0, self._factor)
        for _ in range(_HALVINGS if between else 0):
            middle = {name: math.sqrt(low * high) for name, (low, high) in between.items()}
            answers = self._saturated([(cases[name], factor) for name, factor in middle.items()])
            for (name, factor), over in zip(middle.items(), answers, strict=True):
                low, high = between[name]
                between[name] = (low, factor) if over else (factor, high)
        return {**limits, **{name: high for name, (_, high) in between.items()}}

    def _saturated(self, asked: Sequence[tuple[_UngrownScenario, float]]) -> list[bool]:
        """Whether more transactions arrive than complete; a refused case counts as such."""
        predictor = self._predictor
        scenarios = [self._scenario(case, factor) for case, factor in asked]
        answers = predictor.replayer.ask([SimulationRequest(scenario, 0) for scenario in scenarios])
        return [
            isinstance(answer, Refusal) or is_saturated(scenario.rate_per_s, answer)
            for scenario, answer in zip(scenarios, answers, strict=True)
        ]

    def _scenario(self, case: _UngrownScenario, factor: float) -> Scenario:
        predictor = self._predictor
        run = predictor.run
        asked = scenario_with_placement(case.machine, case.placement).changed(
            growth=factor,
            clients=min(math.ceil(run.clients * factor * _SESSIONS), MOST_CLIENTS),
            cores=case.cores,
            # The error of the reproduced run is the same factor everywhere, as in all predictions.
            rate_per_s=run.rate_per_s * factor * (1 + run.error),
        )
        return scenario_with_growth(scenario_on_instance(asked, predictor.work), run, predictor.work)

    def _of_machine(self, factor: float | None, limits: Sequence[GrowthLimit]) -> list[GrowthLimit]:
        """The limit of the machine, if it is not that of a device behind it."""
        if factor is None:
            return []
        first = min((limit.factor for limit in limits if limit.factor is not None), default=math.inf)
        return [GrowthLimit(what="machine", factor=factor)] if factor * _ALIKE < first else []

    def _space(self, moved: Collection[Role] = ()) -> list[GrowthLimit]:
        """When the files fill their device, less what moved."""
        stay = {role: space for role, space in self._costs.spaces.items() if role not in moved}
        return [
            self._limit("space", roles, factor)
            for _, roles, factor in device_fill_sizes(self._predictor.about, stay)
        ]

    def _wear(self, moved: Collection[Role] = ()) -> list[GrowthLimit]:
        """When writes wear a recorded drive out within its service life; less what moved."""
        run, months = self._predictor.run, self._terms.years * _MONTHS_PER_YEAR
        named = user_named_devices(run, self._terms) or recorded_profiles(run)
        named = {role: device for role, device in named.items() if role not in moved}
        now = {role: load.written_bytes_per_s for role, load in self._predictor.as_recorded.io.items()}
        limits = []
        for device, written in write_rates_by_device(named, now).items():
            if lasts := device_lifetime_months(device, written):
                roles = [role for role, name in named.items() if name == device]
                limits.append(self._limit("wear", roles, lasts / months))
        return limits

    def _limit(self, what: What, roles: list[Role], factor: float) -> GrowthLimit:
        return GrowthLimit(
            what=what, roles=roles, factor=max(factor, 1.0) if factor <= self._factor else None
        )

    def _answer(self, first: GrowthLimit, *, locks: bool) -> GrowthAnswer:
        """The answer to a limit; ``locks``: whether these alone saturate with the most cores."""
        match first.what:
            case "cores":
                return GrowthAnswer() if locks else self._more_cores()
            case "machine":
                return self._machine_for(
                    lambda instance: self._keeps_up(
                        _UngrownScenario({}, self._many, self._machine.changed(instance=instance))
                    )
                )
            case "locks":
                return GrowthAnswer()
            case _:
                return self._other_devices(first)

    def _more_cores(self) -> GrowthAnswer:
        """The least number of cores that keep up, by bisection of its logarithm; the most do."""
        low, high = self._cores, self._many
        while high - low > 1:
            middle = max(math.isqrt(low * high), low + 1)
            if self._keeps_up(_UngrownScenario(self._free(), middle, Scenario())):
                high = middle
            else:
                low = middle
        machine = self._machine_for(lambda instance: (instance.vcpus or 0) >= high)
        return machine.changed(cores=high)

    def _machine_for(self, suffices: Callable[[CloudInstance], bool]) -> GrowthAnswer:
        """The cheapest other machine that suffices."""
        if not self._instances:
            return GrowthAnswer()
        now, *others = self._instances
        currency = self._costs.currency
        priced = [
            (rent_difference(now, instance, currency), instance)
            for instance in others or larger_instances(now)
        ]
        priced.sort(key=lambda pair: math.inf if pair[0] is None else pair[0])
        for cost, instance in priced:
            if suffices(instance):
                return GrowthAnswer(instance=instance.name, cost_per_month=cost)
        return GrowthAnswer()

    def _other_devices(self, first: GrowthLimit) -> GrowthAnswer:
        """The cheapest placement of the roles of a device with which it keeps up, alone."""
        roles = [role for role in first.roles if role in self._placed or first.what == "space"]
        tried = []
        parts = role_units(self._predictor.run.engine, roles)
        for choice in product([RECORDED, *self._devices], repeat=len(parts)):
            placement = {
                role: device
                for unit, device in zip(parts, choice, strict=True)
                for role in unit
                if device != RECORDED
            }
            if placement and self._costs.fits(placement) and self._relieves(first, placement):
                tried.append((self._costs.cost_per_month(placement), placement))
        tried.sort(key=lambda attempt: price_order(attempt[0], *placement_simplicity(attempt[1]), 0.0))
        for start in range(0, min(len(tried), _MOST_ANSWERS), _BATCH):
            batch = tried[start : start + _BATCH]
            cases = [
                (
                    _UngrownScenario({**self._free(first.roles), **placement}, self._many, self._machine),
                    self._factor,
                )
                for _, placement in batch
            ]
            for (cost, placement), over in zip(batch, self._saturated(cases), strict=True):
                if not over:
                    along = self._costs.bill(placement).taken_along
                    return GrowthAnswer(placement={**placement, **along}, cost_per_month=cost)
        return GrowthAnswer()

    def _relieves(self, first: GrowthLimit, placement: Mapping[Role, str]) -> bool:
        """Whether the files that stay are few enough for the space, or the endurance, of their device."""
        left = {"space": self._space, "wear": self._wear}.get(first.what, lambda _: [])(placement.keys())
        return all(limit.factor is None or not set(limit.roles) & set(first.roles) for limit in left)

    def _keeps_up(self, case: _UngrownScenario) -> bool:
        return not self._saturated([(case, self._factor)])[0]
