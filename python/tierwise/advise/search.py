"""The cheapest placement as good as the fastest, one with fewer moves, and the cheapest that reaches a goal.

To leave every file where it is is always among the placements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from tierwise.advise.costs import PlacementCosts
from tierwise.advise.priced_placement import (
    LEAST_SAVING_PER_MONTH,
    MARGIN,
    VERDICTS,
    Goal,
    GoalVerdict,
    PricedPlacement,
    lengthens_median_latency,
    monthly_cost_limits,
    priced_placement,
)
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role, price_order, recommended_placement
from tierwise.model.units import money_sum
from tierwise.predict import RECORDED, Prediction, Predictor, Ranking, Scenario, rank_placements
from tierwise.predict.ranking import (
    RankedPlacement,
    placement_simplicity,
    rate_of,
    relocated_roles,
    scenario_with_placement,
)
from tierwise.predict.simulator_output import CHANCE
from tierwise.results.measurements import StrictModel

_CHANCE = 1.1
"""Factor by which the first look, under one seed, may be off."""
_AT_THE_TOP = 3
"""Number of placements with the best first look that are predicted with intervals."""
_TRIED = 24
"""Number of candidates that are predicted with intervals at most, in search of one."""
_TRIED_FOR_GOAL = 40
"""The same for the cheapest placements whose first look comes near a goal."""
_BATCH = 8

Priced = tuple[float, RankedPlacement]
"""A cost a month, with the wear of its devices at the recorded rate, and the placement."""


class UnusedDevice(StrictModel):
    """A candidate device that no placement within the conditions uses, for any role or for some."""

    device: str
    roles: list[Role] = []
    """Roles that no such placement puts there; empty if it puts none there."""
    least_cost_per_month: float | None
    """Of the cheapest placement that uses it so, above the budget; ``None`` if it does not hold the files."""
    ephemeral: bool = False
    """Whether it may hold none of them because a stop of the machine loses its files."""


class PlacementSearch:
    """Placements over the recorded devices and some others that fit and that the budget allows, ranked.

    Args:
        predictor: of the recording.
        devices: full names of those to choose from.
        costs: of placements.
        budget_per_month: most that a placement may cost; no limit if not given.
        machine: what else changes for all of them, as the limits of their machine; nothing if not given.
        rent_per_month: of one more machine, which bounds what a gain may cost where there is no budget; no
            bound if not given.
    """

    def __init__(
        self,
        predictor: Predictor,
        devices: Sequence[str],
        costs: PlacementCosts,
        budget_per_month: float | None = None,
        machine: Scenario | None = None,
        rent_per_month: float | None = None,
    ) -> None:
        """Replay the placements that are allowed: all, or those that a search chooses."""
        self._predictor, self._devices, self._costs = predictor, devices, costs
        self._machine = machine or Scenario()
        self._budget_per_month, self._rent_per_month = budget_per_month, rent_per_month
        self._least: dict[tuple[Role, str], float] = {}
        """The cheapest placement of each role on each device that holds it."""
        self._used: set[tuple[Role, str]] = set()
        self._considered: set[tuple[Role, str]] = set()
        self.staying = priced_placement(predict_staying(predictor, self._machine), costs, devices)
        """To leave every file where it is."""
        self._predicted: dict[tuple[tuple[Role, str], ...], PricedPlacement | None] = {(): self.staying}
        self.ranking: Ranking = rank_placements(
            predictor,
            [RECORDED, *devices],
            self._machine,
            keep=self._keep,
            cost=self._cost_per_month,
            closer=0,
        )
        priced = [(self._cost_per_month(ranked), ranked) for ranked in self.ranking.ranked]
        self._priced = [pair for pair in priced if budget_per_month is None or pair[0] <= budget_per_month]

    @cached_property
    def fastest(self) -> PricedPlacement | None:
        """The option with the highest rate; of those as fast, but for chance, the cheapest."""
        top = self._priced[:_AT_THE_TOP]
        near = [priced for priced in self._priced if priced[1].rate_per_s * _CHANCE >= top[0][1].rate_per_s]
        near.sort(key=_cheapest_first)
        options = self._options(sorted([*near[:_AT_THE_TOP], *top], key=_cheapest_first))
        least = max((rate_of(option.prediction) for option in options), default=0.0) / (1 + CHANCE)
        return next((option for option in options if rate_of(option.prediction) >= least), None)

    @cached_property
    def best(self) -> PricedPlacement:
        """The recommended option: the cheapest of those as good as the fastest that may be recommended.

        Where none can be told from staying, also of those as good as staying.
        """
        return self._as_good(_cheapest_first, self._worth_the_price) or self.staying

    def simpler(self) -> PricedPlacement | None:
        """The option with the fewest moves as good as the fastest; ``None`` if the best has no more."""
        option = self._as_good(self._simplest_first, self._recommendable)
        return option if option and len(option.placement) < len(self.best.placement) else None

    def may_be_recommended(self, option: PricedPlacement) -> bool:
        """Whether it lengthens no median latency and, if it saves money, lowers no rate and saves enough."""
        slower = option.prediction.speedup is not None and option.prediction.speedup.value < 1 / (1 + CHANCE)
        petty = -LEAST_SAVING_PER_MONTH < option.cost_per_month < 0 and not self.is_told(option)
        return not (slower or petty or lengthens_median_latency(option.prediction, self.staying.prediction))

    def is_told(self, option: PricedPlacement) -> bool:
        """Whether it can be told from staying."""
        return not self.staying.as_good_as(option)

    def is_enough(self, option: PricedPlacement, fastest: PricedPlacement) -> bool:
        """Whether an option is as good as the fastest one and, like it, can be told from staying.

        Where the fastest cannot, it is enough to be as good as staying.
        """
        if self.is_told(fastest):
            return option.as_good_as(fastest) and self.is_told(option)
        return option.as_good_as(fastest) or option.as_good_as(self.staying)

    def serves(self, goal: Goal, option: PricedPlacement) -> bool:
        """Whether an option reaches a goal, and staying does or it can be recommended and told from that."""
        if not goal.verdict(option.prediction).endswith("reached"):
            return False
        return option.stays or (self.may_be_recommended(option) and self.is_told(option))

    def cheapest(self, goal: Goal) -> PricedPlacement | None:
        """The cheapest placement that reaches a goal with its whole interval, else with its best guess.

        Without one: the cheapest of those that are as close as any, but for chance, and whose interval holds
        the goal. ``None`` if every interval lies beyond it.
        """
        near = sorted(
            (candidate for candidate in self._priced if goal.near(candidate[1])), key=_cheapest_first
        )
        closest = sorted(self._priced, key=lambda priced: goal.distance(priced[1]))[:_AT_THE_TOP]
        as_close = sorted(
            (
                priced
                for priced in self._priced
                if _as_close(goal, abs(goal.distance(priced[1])), abs(goal.distance(closest[0][1])))
            ),
            key=_cheapest_first,
        )
        by_verdict: dict[GoalVerdict, list[PricedPlacement]] = {verdict: [] for verdict in VERDICTS}
        for option in self._in_batches([*near[:_TRIED_FOR_GOAL], *as_close[:_AT_THE_TOP], *closest]):
            verdict = goal.verdict(option.prediction)
            if verdict == "reached":
                return option
            by_verdict[verdict].append(option)
        if by_verdict["likely reached"]:
            return by_verdict["likely reached"][0]
        missed = by_verdict["likely missed"]
        least = min((_goal_distance(goal, option) for option in missed), default=0.0)
        return min(
            (option for option in missed if _as_close(goal, abs(_goal_distance(goal, option)), abs(least))),
            key=lambda option: price_order(
                option.cost_per_month, *placement_simplicity(option.placement), -_goal_distance(goal, option)
            ),
            default=None,
        )

    def front(self, goal: Goal | None = None) -> list[PricedPlacement]:
        """The fastest placement for each amount of money, by the first look, predicted with intervals.

        With a goal, also the fastest of those that come near it, and the cheapest that reaches it.
        """
        options = self._options(_faster_for_more_cost(self._recommendable))
        if goal is not None:
            options += self._options(
                _faster_for_more_cost([candidate for candidate in self._priced if goal.near(candidate[1])])
            )
            reaching = self.cheapest(goal)
            options += [reaching] if reaching else []
        return list({id(option): option for option in options}.values())

    def left_out(self) -> list[UnusedDevice]:
        """Candidates that no placement uses, or not for some roles, for their price or their size."""
        listed = []
        for device in self._devices:
            missing = {pair for pair in self._considered - self._used if pair[1] == device}
            dear = missing & self._least.keys()
            partly = any(used == device for _, used in self._used)
            for pairs in [dear, missing - dear] if partly else [missing]:
                if pairs:
                    listed.append(
                        UnusedDevice(
                            device=device,
                            roles=[role for role in Role if (role, device) in pairs] if partly else [],
                            least_cost_per_month=min(
                                (self._least[pair] for pair in pairs & dear), default=None
                            ),
                            ephemeral=not self._costs.may_hold({Role.DATA: device}),
                        )
                    )
        return listed

    def _cost_per_month(self, ranked: RankedPlacement) -> float:
        return self._costs.cost_per_month(ranked.placement)

    def _keep(self, placement: dict[Role, str]) -> bool:
        moved = {(role, device) for role, device in placement.items() if device != RECORDED}
        self._considered |= moved
        if not self._costs.fits(placement):
            return False
        cost = self._costs.cost_per_month(placement)
        for pair in moved:
            self._least[pair] = min(cost, self._least.get(pair, cost))
        if self._budget_per_month is not None and cost > self._budget_per_month:
            return False
        self._used |= moved
        return True

    def _as_good(self, key: Callable[[Priced], Any], among: Sequence[Priced]) -> PricedPlacement | None:
        """The first option in an order that is as good as the fastest which is worth its price.

        Where that one cannot be told from staying, what is as good as staying is enough.
        """
        fastest = self._fastest_to_recommend(self._worth_the_price)
        if fastest is None:
            return None
        helps = self.is_told(fastest)
        least = fastest if helps else min(fastest, self.staying, key=lambda each: rate_of(each.prediction))
        top = min(among[0][1].rate_per_s, rate_of(least.prediction))
        close = [
            candidate
            for candidate in among
            if candidate[1].rate_per_s * MARGIN * _CHANCE >= top
            or not relocated_roles(candidate[1].placement)
        ]
        options = self._in_batches(sorted(close, key=key)[:_TRIED])

        return recommended_placement(
            options, lambda option: self.may_be_recommended(option) and self.is_enough(option, fastest)
        )

    @cached_property
    def _recommendable(self) -> list[Priced]:
        """Placements whose median latency the first look finds no longer, the fastest first."""
        now = self.staying.prediction
        if now.once or now.p50_us is None:
            return self._priced
        most_us = now.p50_us.value * (1 + CHANCE) * _CHANCE
        return [
            candidate
            for candidate in self._priced
            if candidate[1].p50_us <= most_us or not relocated_roles(candidate[1].placement)
        ]

    @cached_property
    def worth_per_month(self) -> float:
        """Without a budget, most that a gain may cost: the first gainful of :func:`monthly_cost_limits`."""
        if self._budget_per_month is not None or not self._helps(self._recommendable):
            return math.inf
        now = self._costs.now_per_month or 0.0  # which more machines pay too
        offers = [
            (now + cost, ranked.rate_per_s) for cost, ranked in _faster_for_more_cost(self._recommendable)
        ]
        limits = (money_sum((limit, -now)) for limit in monthly_cost_limits(offers, self._rent_per_month))
        return next((limit for limit in limits if self._helps(self._up_to(limit))), math.inf)

    @property
    def _worth_the_price(self) -> list[Priced]:
        return self._up_to(self.worth_per_month)

    def _up_to(self, most_per_month: float) -> list[Priced]:
        return [candidate for candidate in self._recommendable if candidate[0] <= most_per_month]

    def _helps(self, among: Sequence[Priced]) -> bool:
        """Whether one that may be recommended can be told from staying."""
        fastest = self._fastest_to_recommend(among)
        return fastest is not None and self.is_told(fastest)

    def _fastest_to_recommend(self, among: Sequence[Priced]) -> PricedPlacement | None:
        """The fastest option of those that may be recommended, if it can be told from staying.

        Else one that can be, if there is one: the interval of a greater gain is wider, and may include no
        change where that of a smaller gain does not.
        """
        tops = filter(self.may_be_recommended, self._options(among[:_AT_THE_TOP]))
        fastest = max(tops, key=lambda option: rate_of(option.prediction), default=None)
        if fastest is None:
            others = self._in_batches(among[_AT_THE_TOP:_TRIED])
            fastest = next(filter(self.may_be_recommended, others), None)
        if fastest is None or self.is_told(fastest):
            return fastest
        lesser = self._in_batches(_distinctly_slower(among)[:_TRIED])
        told = (option for option in lesser if self.is_told(option) and self.may_be_recommended(option))
        return next(told, fastest)

    def _simplest_first(self, priced: Priced) -> tuple[int, float, int, float]:
        """Sort key: the fewest moves, then the lowest cost, the fewest devices and the highest rate."""
        cost, ranked = priced
        moves, devices = placement_simplicity(ranked.placement)
        return moves, cost, devices, -ranked.rate_per_s

    def _in_batches(self, priced: Sequence[Priced]) -> Iterator[PricedPlacement]:
        """Options with intervals, in the same order, predicted a few at a time as they are asked for."""
        for start in range(0, len(priced), _BATCH):
            yield from self._options(priced[start : start + _BATCH])

    def _options(self, priced: Sequence[Priced]) -> list[PricedPlacement]:
        """Options with intervals, in the same order, each predicted once; refused ones are left out."""
        places = [
            {role: device for role, device in ranked.placement.items() if device != RECORDED}
            for _, ranked in priced
        ]
        keys = [tuple(sorted(place.items())) for place in places]
        new = [key for key in keys if key not in self._predicted]
        answers = self._predictor.predict([scenario_with_placement(self._machine, dict(key)) for key in new])
        for key, answer in zip(new, answers, strict=True):
            self._predicted[key] = (
                priced_placement(answer, self._costs, self._devices) if answer.rate_per_s else None
            )
        return [option for key in keys if (option := self._predicted[key])]


def predict_staying(predictor: Predictor, machine: Scenario) -> Prediction:
    """The prediction that every file stays where it is, on a machine.

    Raises:
        TierwiseError: the recording cannot answer it.
    """
    if not machine.changes:
        return predictor.as_recorded
    prediction = predictor.predict([machine])[0]
    if prediction.refused:
        raise TierwiseError(prediction.refused.message, prediction.refused.fix)
    return prediction


def _cheapest_first(priced: Priced) -> tuple[bool, float, int, int, float]:
    """Sort key of :func:`price_order`."""
    cost, ranked = priced
    return price_order(cost, *placement_simplicity(ranked.placement), ranked.rate_per_s)


def _faster_for_more_cost(priced: Sequence[Priced]) -> list[Priced]:
    """Placements that are faster than every cheaper one, the cheapest first."""
    front: list[Priced] = []
    for candidate in sorted(priced, key=_cheapest_first):
        if not front or candidate[1].rate_per_s > front[-1][1].rate_per_s:
            front.append(candidate)
    return front


def _distinctly_slower(among: Sequence[Priced]) -> list[Priced]:
    """Some of those in the order of their rates, each slower than the one before by ``MARGIN``."""
    some: list[Priced] = []
    for candidate in among:
        if not some or candidate[1].rate_per_s * MARGIN <= some[-1][1].rate_per_s:
            some.append(candidate)
    return some


def _goal_distance(goal: Goal, option: PricedPlacement) -> float:
    figure = goal.figure(option.prediction)
    value = figure.value if figure else 0.0
    return -value if goal.what == "tps" else value


def _as_close(goal: Goal, figure: float, closest: float) -> bool:
    """Whether a figure is as close to the goal as the closest one, but for chance."""
    return figure * (1 + CHANCE) >= closest if goal.what == "tps" else figure <= closest * (1 + CHANCE)
