"""Which placements to simulate where there are too many to simulate all: a local search of the front.

The front is the fastest placement for each amount of money. As in Pareto local search (Paquete, Chiarandini
and Stützle, 2004, in *Metaheuristics for Multiobjective Optimisation*), the neighbours of placements on the
front are simulated: those that move one role, or the roles that move as one. Once all neighbours are known,
the search goes on with the front of the other placements, until the limit of simulations is reached. Nothing
is random. Nothing guarantees that the front found is the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from tierwise.model.placement import Role

_AT_ONCE = 4
"""Placements of a front whose neighbours are simulated in one step, evenly spread over the front."""

Placement = dict[Role, str]


class Look(Protocol):
    """A simulated placement."""

    @property
    def placement(self) -> Placement:
        """Device of each role."""

    @property
    def rate_per_s(self) -> float:
        """Its rate."""


L = TypeVar("L", bound=Look)


def search(
    simulate: Callable[[list[Placement]], list[L]],
    placed: Sequence[Sequence[Role]],
    devices: Sequence[str],
    keep: Callable[[Placement], bool],
    cost: Callable[[L], float],
    most: int,
) -> list[L]:
    """Simulate the placements that are likely on the front.

    Args:
        simulate: gives the looks of placements; it leaves out those without an answer.
        placed: roles to place, those together that move as one.
        devices: for each role.
        keep: which placements to consider.
        cost: of a placement.
        most: placements to simulate at most.

    Returns:
        All looks.
    """
    same = [{role: device for unit in placed for role in unit} for device in devices]
    fresh = [*same, *_neighbours(same[0], placed, devices)]
    asked: set[tuple[str, ...]] = set()
    simulated: list[L] = []
    waiting: list[tuple[float, L]] = []
    while len(asked) < most:
        new = {tuple(placement.values()): placement for placement in fresh}
        kept = [(key, placement) for key, placement in new.items() if key not in asked and keep(placement)][
            : most - len(asked)
        ]
        asked.update(key for key, _ in kept)
        looks = simulate([placement for _, placement in kept]) if kept else []
        simulated += looks
        waiting += [(cost(look), look) for look in looks]
        best = front(waiting)
        if not best:
            break
        chosen = best[:: len(best) // -_AT_ONCE]
        waiting = [pair for pair in waiting if all(pair is not other for other in chosen)]
        fresh = [near for _, look in chosen for near in _neighbours(look.placement, placed, devices)]
    return simulated


def front(priced: Sequence[tuple[float, L]]) -> list[tuple[float, L]]:
    """Placements that are faster than every one that costs no more, the cheapest first."""
    steps: list[tuple[float, L]] = []
    for pair in sorted(priced, key=lambda each: (each[0], -each[1].rate_per_s)):
        if not steps or pair[1].rate_per_s > steps[-1][1].rate_per_s:
            steps.append(pair)
    return steps


def _neighbours(
    placement: Placement, placed: Sequence[Sequence[Role]], devices: Sequence[str]
) -> Iterator[Placement]:
    """The placements that differ in one role, or in the roles that move as one."""
    for unit in placed:
        for device in devices:
            if device != placement[unit[0]]:
                yield {**placement, **dict.fromkeys(unit, device)}
