"""Single moves, and the ladder: the best move first, then the best after it, and so on."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.costs import Costs
from tierwise.advise.durability import lost_at_stop
from tierwise.advise.option import lengthens_median, within_margin
from tierwise.model.placement import Role
from tierwise.predict import Estimate, Prediction, Predictor, estimates
from tierwise.predict.ranking import asking, placement_of
from tierwise.predict.together import Unit
from tierwise.results.measurements import Record

_GB = 1e9


class Move(Record):
    """One role moved to one device, from the placement before, with those that it cannot be parted from."""

    role: Role
    along: list[Role] = []
    """Roles that its engine keeps beside it, which move too."""
    device: str
    prediction: Prediction
    """Of the whole placement, this move included."""
    step: Estimate
    """Rate over the rate before the move; the interval covers the simulator's seeds alone."""
    gain_per_s: float
    """More transactions a second than before the move."""
    size_bytes: int
    cost_per_month: float
    """More than before the move; below 0 if it saves money."""
    gain_per_gb: float | None
    """More transactions a second for each 10^9 bytes moved; ``None`` for a role without size."""
    gain_per_cost: float | None
    """More transactions a second for each unit of the currency a month; ``None`` for a move that costs
    nothing."""
    worthwhile: bool
    """Whether its gain can be told from none, by the rule of ``Option.as_good_as``, and the median latency
    gets no longer."""

    @property
    def placement(self) -> dict[Role, str]:
        """Of the roles moved so far."""
        return placement_of(self.prediction)

    @property
    def moved(self) -> dict[Role, str]:
        """The roles that this step moves, and their device."""
        return dict.fromkeys([self.role, *self.along], self.device)


def single_moves(
    predictor: Predictor,
    devices: Sequence[str],
    before: Prediction,
    costs: Costs,
    budget_per_month: float | None,
    placed: Sequence[Unit],
) -> list[Move]:
    """Every move of one role to one device from a placement, best gain for the money first.

    Args:
        predictor: of the recording.
        devices: full names of those to move to.
        before: prediction of the placement to move from.
        costs: of placements.
        budget_per_month: most that a placement may cost a month.
        placed: roles to move, those together that move as one.
    """
    held = placement_of(before)
    tried = [
        (unit, device, {**held, **dict.fromkeys(unit, device)})
        for unit in placed
        for device in devices
        if held.get(unit[0]) != device
    ]
    tried = [step for step in tried if costs.allows(step[2], budget_per_month)]
    answers = predictor.predict([asking(before.scenario, placement) for *_, placement in tried])
    sizes = costs.needed_bytes
    moves = [
        _move((unit, device, sum(sizes.get(role, 0) for role in unit)), before, answer, costs)
        for (unit, device, _), answer in zip(tried, answers, strict=True)
    ]
    return sorted((move for move in moves if move), key=_worth, reverse=True)


def climb(
    predictor: Predictor,
    devices: Sequence[str],
    first: Sequence[Move],
    costs: Costs,
    budget_per_month: float | None,
    placed: Sequence[Unit],
    *,
    memory: bool,
) -> list[Move]:
    """The ladder: from the recorded placement, the move with most gain for the money, again and again.

    Args:
        predictor: of the recording.
        devices: full names of those to move to.
        first: the single moves from the recorded placement.
        costs: of placements.
        budget_per_month: most that a placement may cost a month.
        placed: roles to move, those together that move as one.
        memory: whether files that must last may be kept in memory.
    """
    rungs: list[Move] = []
    moves = list(first)
    while chosen := next(
        (move for move in moves if move.worthwhile and (memory or not lost_at_stop(move.moved))), None
    ):
        rungs.append(chosen)
        moves = single_moves(predictor, devices, chosen.prediction, costs, budget_per_month, placed)
    return rungs


def _move(what: tuple[Unit, str, int], before: Prediction, after: Prediction, costs: Costs) -> Move | None:
    """The move of (roles, device, size in bytes); ``None`` where it has no answer."""
    (role, *along), device, size_bytes = what
    step = estimates.ratio(after.seed_rates_per_s, before.seed_rates_per_s) if after.rate_per_s else None
    if step is None or after.rate_per_s is None or before.rate_per_s is None:
        return None
    gain = after.rate_per_s.value - before.rate_per_s.value
    cost, cost_before = (costs.cost_per_month(placement_of(option)) for option in (after, before))
    distinct = not within_margin(step) and (bool(placement_of(before)) or after.faster)
    return Move(
        role=role,
        along=along,
        device=device,
        prediction=after,
        step=step,
        gain_per_s=gain,
        size_bytes=size_bytes,
        cost_per_month=cost - cost_before,
        gain_per_gb=gain / (size_bytes / _GB) if size_bytes else None,
        gain_per_cost=gain / (cost - cost_before) if cost > cost_before else None,
        worthwhile=distinct and not lengthens_median(after, before),
    )


def _worth(move: Move) -> tuple[bool, float]:
    """Worthwhile moves before others, moves without further cost first, then by gain for the money."""
    per_cost = move.gain_per_cost
    return move.worthwhile, float("inf") if per_cost is None and move.gain_per_s > 0 else per_cost or 0.0
