"""Which files to move where: the decision, what it is compared with, the ladder, the goal, warnings."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from tierwise.advise.alternatives import (
    MachineChange,
    MemoryIncrease,
    SettingChange,
    SettingGainBound,
    current_machine,
    machine_assumptions,
    machine_changes,
    memory_increases,
    setting_changes,
    setting_gain_bounds,
    setting_instead_of_move,
    settings_with_placement,
)
from tierwise.advise.costs import (
    PaymentTerms,
    PlacementCosts,
    PriceSource,
    billing_notes,
    price_sources,
    recorded_profiles,
)
from tierwise.advise.decision import Decision, decide
from tierwise.advise.durability import DeviceDurability, device_durability
from tierwise.advise.growth import GrowthAdvice, advise_growth, parse_growth_factor
from tierwise.advise.moves import AllowedMoves, Move
from tierwise.advise.priced_placement import (
    Goal,
    PricedPlacement,
    UnboundedFiles,
    rent_unknown_note,
    unbounded_files,
)
from tierwise.advise.search import PlacementSearch, UnusedDevice
from tierwise.advise.table_advice import TableAdvice, table_advice_beside
from tierwise.device_models.instances import CloudInstance, find_instances, instance_rent_per_month
from tierwise.device_models.prices import MemoryPrice
from tierwise.model.errors import TierwiseError
from tierwise.model.names import split_names
from tierwise.model.placement import Role
from tierwise.model.units import parse_duration_s, parse_monthly_amount
from tierwise.predict import Estimate, Prediction, Predictor, RecordedRun, database_settings, resolve_device
from tierwise.predict.ranking import placement_of_prediction, roles_by_load
from tierwise.predict.role_space import RoleSpace
from tierwise.predict.usability import Usability, UsabilityRemark, judge_usability
from tierwise.results.measurements import StrictModel


class Caution(StrictModel):
    """A warning, and the placements that it holds for."""

    text: str
    """A sentence without its full stop."""
    placements: list[dict[Role, str]]
    """Those of the advice that it holds for, the recommended one first; empty if it holds for all."""


class Advice(StrictModel):
    """The advice and its basis."""

    usable: bool
    """Whether the recording is usable; the advice from one that is not is not to be followed."""
    remarks: list[UsabilityRemark]
    """Problems of the recording and what to do, those that make it unusable first."""
    decision: Decision
    """What every output recommends."""
    run: RecordedRun
    recorded: Prediction
    """The recorded run as it is reproduced; with a machine, behind its limits."""
    devices: list[str]
    have: list[str]
    """Devices that are owned already and cost nothing."""
    currency: str
    """Of every amount: a code of ISO 4217, such as ``USD``."""
    budget_per_month: float | None
    rent_per_month: float | None
    """Of one more machine, which bounds what a gain may cost without a budget; ``None`` if none is known."""
    costs_now_per_month: float | None
    """Rent of the recorded volumes that can be given up; ``None`` if none is known."""
    goal: Goal | None
    roles: list[Role]
    """Roles that were placed; the others have almost no I/O."""
    moves: list[Move]
    """Of one role from the recorded placement, best gain for the money first."""
    ladder: list[Move]
    """The best move, then the best after it, and so on, until none is worthwhile."""
    settings: list[SettingChange] = []
    """Settings instead of a move: they cost nothing, and most may lose commits. None is recommended unless
    ``decision.setting`` names it."""
    setting_bounds: list[SettingGainBound] = []
    """Further settings that cost nothing, each with a bound of its gain or the reason why none is known."""
    tables: TableAdvice | None = None
    """Tables and indexes to move instead, all else where it was recorded; ``None`` where that was not asked,
    or none has a name or was used. ``--output`` and ``--names`` ask it."""
    memory: list[MemoryIncrease] = []
    """More memory instead of a move, ascending; empty if reads wait for no device, or if the recording does
    not tell which reads more memory answers."""
    memory_price: MemoryPrice | None = None
    """Its price; ``None`` if it is not known in the currency."""
    instance: CloudInstance | None = None
    """The machine of the database, whose limits hold for every placement; ``None`` if none was named."""
    machines: list[MachineChange] = []
    """Other machines instead of a move."""
    growing: GrowthAdvice | None = None
    """What breaks first when data and load grow; ``None`` if it was not asked."""
    best: PricedPlacement
    """The decision without a goal: of the options as good as the fastest, or as staying where nothing helps,
    the cheapest, then that with the fewest moves. To stay is one; files that must last lie where a stop of
    the machine loses them only if the database can be rebuilt."""
    fastest: PricedPlacement | None
    """The option with the highest rate within the budget."""
    step_to_fastest: Estimate | None
    """Rate of the fastest option over that of the decision, seed by seed."""
    simpler: PricedPlacement | None
    """One as good as the best with fewer moves, which costs more; ``None`` if there is none."""
    reaching: PricedPlacement | None
    """The cheapest that reaches the goal, or else the closest whose interval holds it (``Goal.verdict``);
    ``None`` without a goal or if every interval lies beyond it."""
    durability: list[DeviceDurability]
    """What a power cut does to the new devices of the recommended placement."""
    spaces: list[RoleSpace]
    """What a device must hold of each role, and why."""
    filling: list[UnboundedFiles]
    """Files of the recommended placement that may grow without limit, and when their device is full then."""
    left_out: list[UnusedDevice]
    """Candidate devices that no placement uses, for their price or their size."""
    exact: bool
    """Whether every placement within the budget was replayed."""
    tried: int
    prices: list[PriceSource]
    """Source and date of the price of each device that is not owned."""
    notes: list[str]
    warnings: list[Caution]
    """Of the recording, then of the placements above, each once, those that matter most first."""
    cross_checks: list[Caution]
    """What another model says of the placements above."""

    @property
    def instead(self) -> SettingChange | None:
        """The setting that the decision recommends in place of its option."""
        return next((move for move in self.settings if move.setting == self.decision.setting), None)


@dataclass(frozen=True)
class AdviceOptions:
    """What an advice is asked for, as the commands that give one share it.

    Attributes:
        devices: names of the candidate devices; those that ``terms`` say are owned are candidates too, unless
            the recorded run is on them.
        budget_per_month: most that a placement may cost more than is paid now, in the currency of the prices.
        goal: what to reach.
        terms: of payment; the prices that ship, and nothing owned, by default.
        fresh: whether new devices are in their factory state.
        may_lose_s: commits of how many seconds a crash may lose, so that a setting may be recommended; none
            is by default.
        instances: the machine of the database, whose limits hold for every placement, then others to compare
            it with; by default the larger ones of its family that ship.
        grow: a factor by which data and load may grow, to say what breaks first.
    """

    devices: Sequence[str]
    budget_per_month: float | None = None
    goal: Goal | None = None
    terms: PaymentTerms = field(default_factory=PaymentTerms)
    fresh: bool = False
    may_lose_s: float | None = None
    instances: Sequence[CloudInstance] = ()
    grow: float | None = None

    @classmethod
    def parse(
        cls,
        devices: str,
        budget: str | None,
        goal: str | None,
        terms: PaymentTerms,
        *,
        fresh: bool,
        may_lose: str | None = None,
        instances: Sequence[str] = (),
        grow: str | None = None,
    ) -> Self:
        """Read the options of a command line: ``nvme-dc,gp3``, ``50/month``, ``p99=5ms`` and ``1s``.

        Raises:
            TierwiseError: naming the option.
        """
        return cls(
            devices=split_names(devices),
            budget_per_month=None
            if budget is None
            else parse_monthly_amount(budget, "--budget", terms.prices.currency),
            goal=None if goal is None else Goal.parse(goal),
            terms=terms,
            fresh=fresh,
            may_lose_s=None if may_lose is None else parse_duration_s(may_lose, "--may-lose"),
            instances=find_instances(instances),
            grow=None if grow is None else parse_growth_factor(grow),
        )


def advise(
    predictor: Predictor, options: AdviceOptions, *, tables: bool = False, named: bool = False
) -> Advice:
    """Advise on placing the recorded files on some devices beside those that they are on.

    Args:
        predictor: of the recording.
        options: what is asked.
        tables: whether to answer for tables and indexes too, if the recording has their names.
        named: whether the user has named them: then a recording that cannot answer for them is refused.

    Raises:
        TierwiseError: no device, an unknown one, one without a price, or a budget below 0.
    """
    budget_per_month, goal, terms = options.budget_per_month, options.goal, options.terms
    if budget_per_month is not None and budget_per_month < 0:
        raise TierwiseError(f"--budget: {budget_per_month:g} is below 0", "give an amount a month")
    if goal is not None and goal.what != "tps" and predictor.run.from_waits:
        raise TierwiseError(f"--goal {goal.what}: waits do not tell latencies", "give tps=NUMBER, or record")
    if goal is not None and goal.what != "tps" and predictor.run.once:
        raise TierwiseError(
            f"--goal {goal.what}: work that is done once has no latencies",
            "leave it out, or record clients that go on",
        )
    names = candidate_devices(predictor, options.devices, terms)
    costs = PlacementCosts.of(predictor, terms)
    for name in names:
        costs.cost_per_month(dict.fromkeys(predictor.work.footprints, name))
    machine = current_machine(options.instances, terms.recorded_on)
    rent = instance_rent_per_month(options.instances, predictor.work.cores, costs.currency)
    search = PlacementSearch(predictor, names, costs, budget_per_month, machine, rent)
    ranking, fastest, simpler = search.ranking, search.fastest, search.simpler()
    recorded, (_, placed) = search.staying.prediction, roles_by_load(predictor)
    allowed = AllowedMoves(predictor, names, costs, budget_per_month, placed)
    moves = allowed.after(recorded)
    reaching = search.cheapest(goal) if goal else None
    decision = decide(search, predictor.run, goal, reaching)
    tried = setting_changes(predictor, recorded)
    safest_first = [setting.text for setting in database_settings.advised_settings(predictor.about)]
    if setting := setting_instead_of_move(tried, decision.option, goal, options.may_lose_s, safest_first):
        decision = decision.changed(setting=setting.setting)
    tried = settings_with_placement(predictor, tried, decision.option.placement, recorded)
    ladder = allowed.ladder(moves)
    placed_options = [
        decision.option,
        *(option for option in (search.best, fastest, simpler, reaching) if option),
    ]
    answers = [*(option.prediction for option in placed_options), *(move.prediction for move in ladder)]
    judged = judge_usability(predictor)
    priced = [*names, *(volume.device for volume in costs.volumes)]
    return Advice(
        usable=judged.usable,
        remarks=judged.ordered,
        decision=decision,
        run=predictor.run,
        recorded=recorded,
        devices=names,
        have=list(terms.have),
        currency=costs.currency,
        budget_per_month=budget_per_month,
        rent_per_month=rent,
        costs_now_per_month=costs.now_per_month,
        goal=goal,
        roles=ranking.roles,
        moves=moves,
        ladder=ladder,
        settings=tried,
        setting_bounds=setting_gain_bounds(predictor, recorded),
        tables=table_advice_beside(
            predictor,
            names,
            terms,
            budget_per_month=budget_per_month,
            named=named,
            machine=machine,
        )
        if tables or named
        else None,
        memory=memory_increases(predictor, terms.prices, recorded),
        memory_price=terms.prices.memory,
        machines=machine_changes(predictor, options.instances, recorded, decision.option, costs.currency),
        instance=options.instances[0] if options.instances else None,
        growing=advise_growth(
            predictor,
            options.grow,
            names,
            terms,
            machine,
            options.instances,
            budget_per_month=budget_per_month,
        )
        if options.grow
        else None,
        best=search.best,
        fastest=fastest,
        step_to_fastest=decision.option.step_to(fastest) if fastest else None,
        simpler=simpler,
        reaching=reaching,
        durability=device_durability(decision.option.placement, predictor.run.engine),
        spaces=list(costs.spaces.values()),
        filling=unbounded_files(decision.option, costs.spaces),
        left_out=search.left_out(),
        exact=ranking.complete,
        tried=ranking.tried,
        prices=price_sources(priced, terms, datetime.date.today()),
        notes=[
            *ranking.notes,
            *billing_notes(names, terms, costs.volumes, predictor.run),
            *machine_assumptions(options.instances, predictor.work.cores),
            *(
                [
                    f"{rent_unknown_note(costs.currency)}, or --instance FILE with per_month in "
                    f"{costs.currency}"
                ]
                if rent is None and budget_per_month is None
                else []
            ),
        ],
        warnings=_without_remarks(
            judged,
            _cautions(recorded.warnings, [(prediction, prediction.warnings) for prediction in answers]),
        ),
        cross_checks=_cautions(
            recorded.cross_checks, [(prediction, prediction.cross_checks) for prediction in answers]
        ),
    )


def _without_remarks(judged: Usability, cautions: Sequence[Caution]) -> list[Caution]:
    """The warnings without those that only repeat a remark on the recording."""
    reasons = tuple(judged.reasons)
    return [caution for caution in cautions if not (reasons and caution.text.startswith(reasons))]


def _cautions(of_all: Sequence[str], texts_of: Sequence[tuple[Prediction, Sequence[str]]]) -> list[Caution]:
    """Each sentence once with its placements, in order; those of the recording hold for all."""
    placements: dict[str, list[dict[Role, str]]] = {text: [] for text in of_all}
    moved = {
        frozenset(prediction.scenario.placement.items())
        for prediction, _ in texts_of
        if prediction.scenario.placement
    }
    for answer, sentences in texts_of:
        for text in sentences:
            places = placements.setdefault(text, [])
            if text not in of_all and placement_of_prediction(answer) not in places:
                places.append(placement_of_prediction(answer))
    return [
        Caution(text=text, placements=[] if len(places) >= len(moved) else places)
        for text, places in placements.items()
    ]


def candidate_devices(predictor: Predictor, devices: Sequence[str], terms: PaymentTerms) -> list[str]:
    """The named devices, then those owned that the recorded run is not on."""
    named = [resolve_device(name).name for name in devices]
    recorded = set(recorded_profiles(predictor.run).values())
    names = list(dict.fromkeys([*named, *(name for name in terms.have if name not in recorded)]))
    if not names:
        raise TierwiseError("no device to move files to", "name one or more with --devices, as nvme-dc,gp3")
    return names
