"""The best placement for the money, and the cheapest that reaches a goal."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.advise.costs import Costs
from tierwise.advise.endurance import Wear, wear
from tierwise.advise.goal import Goal
from tierwise.advise.moves import placement_of
from tierwise.model.roles import Role
from tierwise.predict import RECORDED, Prediction, Predictor, Ranking, Scenario, rank
from tierwise.predict.ranking import Ranked
from tierwise.results.measurements import Record

_AS_GOOD = 1.03
"""Placements within this factor of the best count as equal, and the cheapest of them is taken."""
_TRIED_FOR_GOAL = 20
"""Number of the cheapest placements near the goal that are predicted with intervals."""


class Option(Record):
    """A placement, its prediction and its price."""

    placement: dict[Role, str]
    """Of the roles that are not where they were recorded."""
    prediction: Prediction
    usd_per_month: float
    size_bytes: dict[str, int]
    """Bytes of files on each new device."""
    wear: list[Wear]


class Search:
    """All placements over the recorded devices and some others that the budget allows, ranked.

    Args:
        predictor: of the recording.
        devices: full names of those to choose from.
        costs: of placements.
        budget_usd: what all devices may cost a month; no limit if not given.
    """

    def __init__(
        self,
        predictor: Predictor,
        devices: Sequence[str],
        costs: Costs,
        budget_usd: float | None = None,
    ) -> None:
        """Replay every placement that is allowed."""
        self._predictor, self._devices, self._costs = predictor, devices, costs
        self.ranking: Ranking = rank(
            predictor,
            [RECORDED, *devices],
            keep=lambda one: budget_usd is None or costs.usd_per_month(one) <= budget_usd,
            closer=0,
        )
        self._priced = [(costs.usd_per_month(one.placement), one) for one in self.ranking.ranked]

    def best(self) -> Option | None:
        """The placement with the highest rate, or a cheaper one that is as good."""
        if not self._priced:
            return None
        top = self.ranking.ranked[0].rate_per_s
        as_good = [priced for priced in self._priced if priced[1].rate_per_s >= top / _AS_GOOD]
        return self._option(min(as_good, key=_cheapest_first)[1])

    def cheapest(self, goal: Goal) -> Option | None:
        """The cheapest placement that reaches a goal with its whole interval, else with its value."""
        cheapest_first = sorted(self._priced, key=_cheapest_first)
        near = [one for _, one in cheapest_first if goal.near(one)][:_TRIED_FOR_GOAL]
        options = [option for option in map(self._option, near) if goal.reached(option.prediction)]
        surely = (option for option in options if goal.reached(option.prediction, surely=True))
        return next(surely, options[0] if options else None)

    def _option(self, ranked: Ranked) -> Option:
        moved = {role: device for role, device in ranked.placement.items() if device != RECORDED}
        scenario = Scenario(placement={role.value: device for role, device in moved.items()})
        (prediction,) = self._predictor.predict([scenario])
        return Option(
            placement=placement_of(prediction),
            prediction=prediction,
            usd_per_month=self._costs.usd_per_month(moved),
            size_bytes=self._costs.size_bytes(moved),
            wear=wear(prediction, self._devices),
        )


def _cheapest_first(priced: tuple[float, Ranked]) -> tuple[float, int, float]:
    """Sort key: the lowest price, then the fewest moves, then the highest rate."""
    usd, ranked = priced
    moves = sum(device != RECORDED for device in ranked.placement.values())
    return usd, moves, -ranked.rate_per_s
