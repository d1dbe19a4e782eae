"""Which files to move where: the ladder of moves, the best placement for the money, and device wear."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.costs import Costs
from tierwise.advise.goal import Goal
from tierwise.advise.moves import Move, climb, single_moves
from tierwise.advise.search import Option, Search
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.predict import Prediction, Predictor, RecordedRun, resolve
from tierwise.results.measurements import Record


class Advice(Record):
    """The advice and its basis."""

    run: RecordedRun
    recorded: Prediction
    """The recorded run as it is reproduced."""
    devices: list[str]
    budget_usd: float | None
    goal: Goal | None
    roles: list[Role]
    """Roles that were placed; the others have almost no I/O."""
    moves: list[Move]
    """Of one role from the recorded placement, best gain for the money first."""
    ladder: list[Move]
    """The best move, then the best after it, and so on, until none is worthwhile."""
    best: Option | None
    """The option with the highest rate within the budget, or the cheapest of those that are as good."""
    reaching: Option | None
    """The cheapest that reaches the goal; ``None`` without a goal or if none does."""
    exact: bool
    """Whether every placement within the budget was replayed."""
    tried: int
    notes: list[str]
    warnings: list[str]


def advise(
    predictor: Predictor,
    devices: Sequence[str],
    budget_usd: float | None = None,
    goal: Goal | None = None,
) -> Advice:
    """Advise on placing the recorded files on some devices beside those that they are on.

    Args:
        predictor: of the recording.
        devices: names, as in a scenario.
        budget_usd: US dollars a month for all of them.
        goal: what to reach.

    Raises:
        TierwiseError: no device, an unknown one, one without a price, or a budget below 0.
    """
    if budget_usd is not None and budget_usd < 0:
        raise TierwiseError(f"--budget: {budget_usd:g} is below 0", "give US dollars a month")
    names = list(dict.fromkeys(resolve(name).name for name in devices))
    costs = Costs(predictor.work.footprints)
    for name in names:
        costs.usd_per_month(dict.fromkeys(predictor.work.footprints, name))
    search = Search(predictor, names, costs, budget_usd)
    ranking = search.ranking
    recorded = predictor.as_recorded
    moves = single_moves(predictor, names, recorded, costs, budget_usd, ranking.roles)
    reaching = search.cheapest(goal) if goal else None
    best = search.best()
    answers = [recorded, *(move.prediction for move in moves), *([best.prediction] if best else [])]
    return Advice(
        run=predictor.run,
        recorded=recorded,
        devices=names,
        budget_usd=budget_usd,
        goal=goal,
        roles=ranking.roles,
        moves=moves,
        ladder=climb(predictor, names, moves, costs, budget_usd),
        best=best,
        reaching=reaching,
        exact=ranking.complete,
        tried=ranking.tried,
        notes=ranking.notes,
        warnings=list(dict.fromkeys(warning for answer in answers for warning in answer.warnings)),
    )
