"""Single moves, and the ladder: the best move first, then the best after it, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.advise.costs import PlacementCosts
from tierwise.advise.priced_placement import is_rate_unchanged, lengthens_median_latency
from tierwise.model.placement import Role
from tierwise.predict import Estimate, Prediction, Predictor, estimates
from tierwise.predict.inseparable_roles import Unit
from tierwise.predict.ranking import placement_of_prediction, scenario_with_placement
from tierwise.results.measurements import StrictModel

_GB = 1e9


class Move(StrictModel):
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
        return placement_of_prediction(self.prediction)

    @property
    def moved(self) -> dict[Role, str]:
        """The roles that this step moves, and their device."""
        return dict.fromkeys([self.role, *self.along], self.device)


@dataclass(frozen=True)
class AllowedMoves:
    """The moves that are allowed.

    Attributes:
        predictor: of the recording.
        devices: full names of those to move to.
        costs: of placements.
        budget_per_month: most that a placement may cost a month.
        placed: roles to move, those together that move as one.
    """

    predictor: Predictor
    devices: Sequence[str]
    costs: PlacementCosts
    budget_per_month: float | None
    placed: Sequence[Unit]

    def after(self, before: Prediction) -> list[Move]:
        """Every move of one role to one device from a placement, best gain for the money first."""
        held, sizes = placement_of_prediction(before), self.costs.needed_bytes
        tried = [
            (unit, device, placement)
            for unit in self.placed
            for device in self.devices
            if held.get(unit[0]) != device
            and self.costs.allows(placement := {**held, **dict.fromkeys(unit, device)}, self.budget_per_month)
        ]
        answers = self.predictor.predict(
            [scenario_with_placement(before.scenario, placement) for *_, placement in tried]
        )
        moves = [
            _move((unit, device, sum(sizes.get(role, 0) for role in unit)), before, answer, self.costs)
            for (unit, device, _), answer in zip(tried, answers, strict=True)
        ]
        return sorted((move for move in moves if move), key=_move_preference, reverse=True)

    def ladder(self, first: Sequence[Move]) -> list[Move]:
        """From the recorded placement, the move with most gain for the money, again and again.

        Args:
            first: the moves from the recorded placement.
        """
        rungs: list[Move] = []
        moves = first
        while chosen := next((move for move in moves if move.worthwhile), None):
            rungs.append(chosen)
            moves = self.after(chosen.prediction)
        return rungs


def _move(
    what: tuple[Unit, str, int], before: Prediction, after: Prediction, costs: PlacementCosts
) -> Move | None:
    """The move of (roles, device, size in bytes); ``None`` where it has no answer."""
    (role, *along), device, size_bytes = what
    step = (
        estimates.estimate_ratio(after.seed_rates_per_s, before.seed_rates_per_s)
        if after.rate_per_s
        else None
    )
    if step is None or after.rate_per_s is None or before.rate_per_s is None:
        return None
    gain = after.rate_per_s.value - before.rate_per_s.value
    cost, cost_before = (costs.cost_per_month(placement_of_prediction(option)) for option in (after, before))
    distinct = not is_rate_unchanged(step) and (bool(placement_of_prediction(before)) or after.faster)
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
        worthwhile=distinct and not lengthens_median_latency(after, before),
    )


def _move_preference(move: Move) -> tuple[bool, float]:
    """Worthwhile moves before others, moves without further cost first, then by gain for the money."""
    per_cost = move.gain_per_cost
    return move.worthwhile, float("inf") if per_cost is None and move.gain_per_s > 0 else per_cost or 0.0
