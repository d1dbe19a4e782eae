"""How sure each move is: the best set again and again, with speed-ups drawn from their intervals.

The logarithm of a speed-up is drawn from a normal distribution with the half widths of its 95 % interval. The
part of the interval that is due to the simulator's seeds is drawn for each option. The rest, most of it the
model's error, is drawn once for each database: it is mostly the same before and after a move.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tierwise.fleet.options import FleetOption
from tierwise.model.extras import np

if TYPE_CHECKING:
    from tierwise.fleet.relaxation import Floats

DRAWS = 200
"""Number of draws: a share of one half is then known to ±0.07 (95 %)."""
_DEVIATIONS = 1.959964
"""Half width of a 95 % interval, in standard deviations."""


def drawn_speedups(databases: Sequence[Sequence[FleetOption]], seed: int, draws: int) -> Iterator[Floats]:
    """Speed-ups of every option, database after database, for each draw.

    Recorded placements have 1. No speed-up exceeds the bound from the recorded waits.

    Args:
        databases: options of each database.
        seed: of the random number generator.
        draws: how many.
    """
    rng = np.random.default_rng(seed)
    options = [option for each in databases for option in each]
    owner = np.repeat(np.arange(len(databases)), [len(each) for each in databases])
    values = np.array([option.speedup.value for option in options])
    seeds = np.array([option.seed_half_width if option.placement else 0.0 for option in options])
    below, above = (np.array([_rest(option, end) for option in options]) for end in ("low", "high"))
    most = np.array([option.most_speedup or np.inf for option in options])
    for _ in range(draws):
        model = (rng.standard_normal(len(databases)) / _DEVIATIONS)[owner]
        chance = rng.standard_normal(len(options)) / _DEVIATIONS
        yield np.minimum(values * np.exp(np.where(model < 0, below, above) * model + seeds * chance), most)


def _rest(option: FleetOption, end: str) -> float:
    """Distance of an end of the interval from the value, on the logarithm, without what the seeds add."""
    if not option.placement:
        return 0.0
    distance = abs(math.log(getattr(option.speedup, end) / option.speedup.value))
    return math.sqrt(max(distance**2 - option.seed_half_width**2, 0.0))
