"""Sets of tables and indexes to ask about: for each size, the one that sessions waited for longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tierwise.recording.relations import Relations

MOST_SETS = 6
"""Sets that are predicted, besides the largest: each is a recording of its own to the simulator."""
MOST_ALONE = 8
"""Tables and indexes that are also predicted alone, where that is asked for."""
Places = tuple[int, ...]
"""Tables and indexes by their places among those that were used."""
_STEP = 1.01
"""Value of a set over that of the next smaller one from which on both are predicted."""
_MOST_COMBINATIONS = 20_000
"""Of partial sets up to which the search is exact; beyond it, they are thinned evenly."""


@dataclass(frozen=True)
class Plan:
    """The questions about one device: sets of places among the used tables, by size, and single ones."""

    sets: list[Places]
    alone: list[Places]


def plan_sets(relations: Relations, most_bytes: float, alone: bool) -> Plan:
    """The questions about a device with some space, and about single tables if these are asked ``alone``.

    Args:
        relations: tables and indexes of the recording.
        most_bytes: of recorded files that may go to the device.
        alone: whether to ask about single ones too.
    """
    sizes, values = [row.size_bytes for row in relations.used], _values(relations)
    fitting = [place for place, size in enumerate(sizes) if size <= most_bytes]
    fronts = best_sets([(sizes[place], values[place]) for place in fitting], most_bytes)
    sets = [tuple(sorted(fitting[place] for place in front)) for front in fronts]
    chosen = _spread(_distinct(sets, values))
    chosen.sort(key=lambda places: sum(sizes[place] for place in places))
    return Plan(chosen, [(place,) for place in fitting[:MOST_ALONE]] if alone else [])


def best_sets(items: Sequence[tuple[int, float]], capacity: float | None) -> list[Places]:
    """The sets of items that no other set of at most their size surpasses in value, smallest first.

    Args:
        items: size and value of each, both at least 0.
        capacity: largest size of a set; ``None`` for no limit.
    """
    kept: list[tuple[int, float, Places]] = [(0, 0.0, ())]
    for place, (size, value) in enumerate(items):
        more = [(subset[0] + size, subset[1] + value, (*subset[2], place)) for subset in kept]
        both = sorted(
            kept + [subset for subset in more if capacity is None or subset[0] <= capacity],
            key=lambda subset: (subset[0], -subset[1]),
        )
        kept = []
        for subset in both:
            if not kept or subset[1] > kept[-1][1]:
                kept.append(subset)
        kept = kept[:: -(-len(kept) // _MOST_COMBINATIONS)]
    return [places for _, _, places in kept if places]


def _values(relations: Relations) -> list[float]:
    """The value of each used table or index, in seconds of sessions' waits."""
    waited_s = sum(row.waited_s for row in relations.used)
    device_s = sum(row.device_s for row in relations.used) or 1.0
    return [row.waited_s + row.device_s / device_s * (waited_s - row.waited_s) for row in relations.used]


def _distinct(sets: Sequence[Places], values: Sequence[float]) -> list[Places]:
    """Sets that are worth ``_STEP`` more than a smaller one, and the last."""
    kept: list[Places] = []
    most = 0.0
    for places in sets:
        worth = sum(values[place] for place in places)
        if worth > _STEP * most:
            kept, most = [*kept, places], worth
    return kept if not sets or kept[-1] == sets[-1] else [*kept, sets[-1]]


def _spread(sets: Sequence[Places]) -> list[Places]:
    """At most ``MOST_SETS`` of the sets and the last, evenly over the front."""
    if len(sets) <= MOST_SETS:
        return list(sets)
    places = {round(number * (len(sets) - 1) / MOST_SETS) for number in range(MOST_SETS + 1)}
    return [sets[place] for place in sorted(places)]
