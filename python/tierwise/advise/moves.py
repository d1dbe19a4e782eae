"""Single moves of a role, and the ladder: the best move first, then the best after it, and so on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tierwise.advise.costs import Costs
from tierwise.model.roles import Role
from tierwise.predict import Estimate, Prediction, Predictor, estimates
from tierwise.predict.ranking import asking, placement_of
from tierwise.results.measurements import Record

LEAST_STEP = 1.03
"""Least speed-up of a worthwhile move, whatever its interval."""
_GB = 1e9


class Move(Record):
    """One role moved to one device, from the placement before."""

    role: Role
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

    @property
    def placement(self) -> dict[Role, str]:
        """Of the roles moved so far."""
        return placement_of(self.prediction)

    @property
    def worthwhile(self) -> bool:
        """Whether its gain exceeds chance and reaches ``LEAST_STEP``."""
        return is_worthwhile(self.step)


def is_worthwhile(step: Estimate) -> bool:
    """Whether a ratio of rates, seed by seed, exceeds chance and reaches ``LEAST_STEP``."""
    return step.low > 1 and step.value >= LEAST_STEP


def single_moves(
    predictor: Predictor,
    devices: Sequence[str],
    before: Prediction,
    costs: Costs,
    budget_per_month: float | None = None,
    roles: Iterable[Role] | None = None,
) -> list[Move]:
    """Every move of one role to one device from a placement, best gain for the money first.

    Args:
        predictor: of the recording.
        devices: full names of those to move to.
        before: prediction of the placement to move from.
        costs: of placements.
        budget_per_month: most that a placement may cost a month.
        roles: which to move; all if not given.
    """
    held = placement_of(before)
    tried = [
        (role, device, {**held, role: device})
        for role in (predictor.work.footprints if roles is None else roles)
        for device in devices
        if held.get(role) != device
    ]
    tried = [one for one in tried if costs.allows(one[2], budget_per_month)]
    answers = predictor.predict([asking(before.scenario, placement) for *_, placement in tried])
    sizes = predictor.work.footprints
    moves = [
        _move((role, device, sizes.get(role, 0)), before, answer, costs)
        for (role, device, _), answer in zip(tried, answers, strict=True)
    ]
    return sorted((move for move in moves if move), key=_worth, reverse=True)


def climb(
    predictor: Predictor,
    devices: Sequence[str],
    first: Sequence[Move],
    costs: Costs,
    budget_per_month: float | None = None,
) -> list[Move]:
    """The ladder: from the recorded placement, the move with most gain for the money, again and again.

    Args:
        predictor: of the recording.
        devices: full names of those to move to.
        first: the single moves from the recorded placement.
        costs: of placements.
        budget_per_month: most that a placement may cost a month.
    """
    rungs: list[Move] = []
    moves, roles = list(first), list(dict.fromkeys(move.role for move in first))
    while chosen := next((move for move in moves if move.worthwhile), None):
        rungs.append(chosen)
        moves = single_moves(predictor, devices, chosen.prediction, costs, budget_per_month, roles)
    return rungs


def _move(what: tuple[Role, str, int], before: Prediction, after: Prediction, costs: Costs) -> Move | None:
    """The move of (role, device, size in bytes); ``None`` where it has no answer."""
    role, device, size_bytes = what
    step = estimates.ratio(after.seed_rates_per_s, before.seed_rates_per_s) if after.rate_per_s else None
    if step is None or after.rate_per_s is None or before.rate_per_s is None:
        return None
    gain = after.rate_per_s.value - before.rate_per_s.value
    cost = costs.bill_of(after).cost_per_month - costs.bill_of(before).cost_per_month
    return Move(
        role=role,
        device=device,
        prediction=after,
        step=step,
        gain_per_s=gain,
        size_bytes=size_bytes,
        cost_per_month=cost,
        gain_per_gb=gain / (size_bytes / _GB) if size_bytes else None,
        gain_per_cost=gain / cost if cost > 0 else None,
    )


def _worth(move: Move) -> tuple[bool, float]:
    """Worthwhile moves before others, moves without further cost first, then by gain for the money."""
    per_cost = move.gain_per_cost
    return move.worthwhile, float("inf") if per_cost is None and move.gain_per_s > 0 else per_cost or 0.0
