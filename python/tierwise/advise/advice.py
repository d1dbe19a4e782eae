"""Which files to move where: the recommended placement, the ladder of moves, the goal, and device wear."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from tierwise.advise.costs import Costs
from tierwise.advise.durability import Durability, durability
from tierwise.advise.goal import Goal
from tierwise.advise.moves import Move, climb, single_moves
from tierwise.advise.option import Option
from tierwise.advise.recorded_volumes import recorded_profiles
from tierwise.advise.search import LeftOut, Search
from tierwise.advise.sources import UsedPrice, billing_notes, used_prices
from tierwise.advise.terms import Terms
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.predict import Estimate, Prediction, Predictor, RecordedRun, resolve
from tierwise.results.measurements import Record


class Advice(Record):
    """The advice and its basis."""

    run: RecordedRun
    recorded: Prediction
    """The recorded run as it is reproduced."""
    devices: list[str]
    have: list[str]
    """Devices that are owned already and cost nothing."""
    currency: str
    """Of every amount: a code of ISO 4217, such as ``USD``."""
    budget_per_month: float | None
    costs_now_per_month: float | None
    """Rent of the recorded volumes that can be given up; ``None`` if none is known."""
    goal: Goal | None
    roles: list[Role]
    """Roles that were placed; the others have almost no I/O."""
    moves: list[Move]
    """Of one role from the recorded placement, best gain for the money first."""
    ladder: list[Move]
    """The best move, then the best after it, and so on, until none is worthwhile."""
    best: Option | None
    """The recommended option: of those as good as the fastest, with the fewest moves, then the cheapest."""
    fastest: Option | None
    """The option with the highest rate within the budget."""
    step_to_fastest: Estimate | None
    """Rate of the fastest option over that of the best, seed by seed."""
    cheaper: Option | None
    """One as good as the fastest that costs less than the best, with more moves; ``None`` if none does."""
    reaching: Option | None
    """The cheapest that reaches the goal, or else the closest whose interval holds it (``Goal.verdict``);
    ``None`` without a goal or if every interval lies beyond it."""
    durability: list[Durability]
    """What a power cut does to the new devices of the recommended placement."""
    left_out: list[LeftOut]
    """Candidate devices that no placement uses, for their price or their size."""
    exact: bool
    """Whether every placement within the budget was replayed."""
    tried: int
    prices: list[UsedPrice]
    """Source and date of the price of each device that is not owned."""
    notes: list[str]
    warnings: list[str]


def advise(
    predictor: Predictor,
    devices: Sequence[str],
    budget_per_month: float | None = None,
    goal: Goal | None = None,
    terms: Terms | None = None,
) -> Advice:
    """Advise on placing the recorded files on some devices beside those that they are on.

    Args:
        predictor: of the recording.
        devices: names, as in a scenario; those that ``terms`` say are owned are candidates too, unless the
            recorded run is on them.
        budget_per_month: most that a placement may cost more than is paid now, in the currency of the prices.
        goal: what to reach.
        terms: of payment; the prices that ship, and nothing owned, if not given.

    Raises:
        TierwiseError: no device, an unknown one, one without a price, or a budget below 0.
    """
    if budget_per_month is not None and budget_per_month < 0:
        raise TierwiseError(f"--budget: {budget_per_month:g} is below 0", "give an amount a month")
    if goal is not None and goal.what != "tps" and predictor.run.from_waits:
        raise TierwiseError(f"--goal {goal.what}: waits do not tell latencies", "give tps=NUMBER, or record")
    terms = terms or Terms()
    names = _candidates(predictor, devices, terms)
    costs = Costs.of(predictor, terms)
    for name in names:
        costs.cost_per_month(dict.fromkeys(predictor.work.footprints, name))
    search = Search(predictor, names, costs, budget_per_month)
    ranking = search.ranking
    recorded = predictor.as_recorded
    moves = single_moves(predictor, names, recorded, costs, budget_per_month, ranking.roles)
    best, fastest = search.best, search.fastest
    answers = [recorded, *(move.prediction for move in moves), *([best.prediction] if best else [])]
    priced = [*names, *(volume.device for volume in costs.volumes)]
    return Advice(
        run=predictor.run,
        recorded=recorded,
        devices=names,
        have=list(terms.have),
        currency=costs.currency,
        budget_per_month=budget_per_month,
        costs_now_per_month=costs.now_per_month,
        goal=goal,
        roles=ranking.roles,
        moves=moves,
        ladder=climb(predictor, names, moves, costs, budget_per_month),
        best=best,
        fastest=fastest,
        step_to_fastest=best.step_to(fastest) if best and fastest else None,
        cheaper=search.cheaper(),
        reaching=search.cheapest(goal) if goal else None,
        durability=durability(best.placement, predictor.run.engine) if best else [],
        left_out=search.left_out(),
        exact=ranking.complete,
        tried=ranking.tried,
        prices=used_prices(priced, terms, datetime.date.today()),
        notes=[*ranking.notes, *billing_notes(names, terms, costs.volumes)],
        warnings=list(dict.fromkeys(warning for answer in answers for warning in answer.warnings)),
    )


def _candidates(predictor: Predictor, devices: Sequence[str], terms: Terms) -> list[str]:
    """The named devices, then those owned that the recorded run is not on."""
    named = [resolve(name).name for name in devices]
    recorded = set(recorded_profiles(predictor.run).values())
    names = list(dict.fromkeys([*named, *(name for name in terms.have if name not in recorded)]))
    if not names:
        raise TierwiseError("no device to move files to", "name one or more with --devices, as nvme-dc,gp3")
    return names
