"""The search of placements where there are too many to simulate all."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tierwise.model.placement import Role
from tierwise.predict.ranking import cost_front, search_cost_front

ROLES = (Role.LOG, Role.DATA, Role.INDEX)
PLACED = [(role,) for role in ROLES]
DEVICES = ("disk", "flash", "memory", "cloud")
ALL = len(DEVICES) ** len(ROLES)


@dataclass(frozen=True)
class Simulated:
    placement: dict[Role, str]
    rate_per_s: float
    cost: float


class Machine:
    """Times and prices at random; the time of a placement is more than the sum of its roles' times."""

    def __init__(self, seed: int) -> None:
        drawn = random.Random(seed)
        self.time_s = {pair: drawn.lognormvariate(0, 2) for pair in itertools.product(ROLES, DEVICES)}
        self.price = {device: drawn.lognormvariate(0, 2) for device in DEVICES}
        self.asked: list[tuple[str, ...]] = []

    def simulate(self, placements: list[dict[Role, str]]) -> list[Simulated]:
        self.asked += [tuple(placement.values()) for placement in placements]
        return [self.of(placement) for placement in placements]

    def of(self, placement: dict[Role, str]) -> Simulated:
        times = [self.time_s[pair] for pair in placement.items()]
        cost = sum(self.price[device] for device in {*placement.values()})
        return Simulated(placement, 1 / (sum(times) + max(times)), cost)

    def every(self) -> list[Simulated]:
        chosen = itertools.product(DEVICES, repeat=len(ROLES))
        return [self.of(dict(zip(ROLES, devices, strict=True))) for devices in chosen]


def figures(looks: list[Simulated]) -> list[tuple[float, float]]:
    return [(cost, look.rate_per_s) for cost, look in cost_front([(look.cost, look) for look in looks])]


@given(seed=st.integers(0, 10**6))
def test_without_a_limit_the_front_is_that_of_all_placements(seed: int) -> None:
    machine = Machine(seed)
    match = search_cost_front(machine.simulate, PLACED, DEVICES, lambda _: True, lambda look: look.cost, ALL)
    assert figures(match) == figures(machine.every())


@given(seed=st.integers(0, 10**6), most=st.integers(1, ALL))
def test_a_limit_holds_and_nothing_is_simulated_twice(seed: int, most: int) -> None:
    machine = Machine(seed)
    search_cost_front(
        machine.simulate,
        PLACED,
        DEVICES,
        lambda look: look[Role.LOG] != "cloud",
        lambda look: look.cost,
        most,
    )
    assert len(machine.asked) == len({*machine.asked}) <= most
    assert all(log != "cloud" for log, *_ in machine.asked)


def test_a_quarter_of_the_simulations_misses_less_than_a_random_quarter() -> None:
    missed: dict[str, list[float]] = {"search": [], "sample": []}
    for seed in range(40):
        machine = Machine(seed)
        every = machine.every()
        match = search_cost_front(
            machine.simulate, PLACED, DEVICES, lambda _: True, lambda look: look.cost, ALL // 4
        )
        sample = random.Random(seed).sample(every, ALL // 4)
        for (cost, rate_per_s), (name, looks) in itertools.product(
            figures(every), (("search", match), ("sample", sample))
        ):
            best = max((look.rate_per_s for look in looks if look.cost <= cost), default=0.0)
            missed[name].append(1 - best / rate_per_s)
    assert sum(missed["search"]) < sum(missed["sample"]) / 2, missed
