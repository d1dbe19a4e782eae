"""The best set of options under one budget: one option of each database, exactly.

The multiple-choice knapsack problem (Kellerer, Pferschy and Pisinger, *Knapsack Problems*, 2004, chapter 11)
as a mixed-integer program, solved by HiGHS through ``scipy.optimize.milp``. An option is a variable, 0 or 1.
One option of each database is chosen. The sum of costs is within the budget, the sum of gains is maximal.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tierwise.fleet.core import core
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import np, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tierwise.fleet.core import Floats

_MOST_S = 60.0
"""Time after which the best set so far is taken, with its gap."""
_ROUNDING = 1e-9
"""Gap up to which a set is proved to be the best: the solver's bound is a sum, which is rounded."""
_SCALE = 1e4
"""Greatest gain as the solver sees it: its absolute tolerance of 1e-6 is then 1e-10 of it."""


@dataclass(frozen=True)
class Choice:
    """A set of options.

    Attributes:
        options: index of the option of each database, among its own.
        gain: sum of their gains.
        cost: sum of their costs.
        gap: how much more the best set may gain at most, as a share of the gain; 0 if this is the best.
    """

    options: tuple[int, ...]
    gain: float
    cost: float
    gap: float


def require_solver() -> None:
    """Check that the solver is installed.

    Raises:
        HostError: it is not; the fix is the line to type.
    """
    require("cluster", "the best set of moves", ["scipy"])


class Knapsack:
    """Options of many databases, each with a cost.

    Args:
        costs: for each database, the cost of each of its options; at least one option each.
    """

    def __init__(self, costs: Sequence[Sequence[float]]) -> None:
        """Build the parts of the program that no budget and no gain changes."""
        require_solver()
        self._optimize: Any = import_module("scipy.optimize")
        sparse: Any = import_module("scipy.sparse")
        self._ends = np.cumsum([len(one) for one in costs])
        self._starts = self._ends - [len(one) for one in costs]
        self._costs = np.array([cost for one in costs for cost in one], dtype=np.float64)
        owner = np.repeat(np.arange(len(costs)), [len(one) for one in costs])
        every = np.arange(len(self._costs))
        self._one_each = sparse.csr_array((np.ones(len(every)), (owner, every)))

    @property
    def least_cost(self) -> float:
        """Of the cheapest set."""
        return float(np.minimum.reduceat(self._costs, self._starts).sum())

    def best(self, gains: Floats, budget: float | None) -> Choice:
        """The set with the greatest gain; of options of one database with the same gain, the cheapest.

        Args:
            gains: of every option, database after database.
            budget: most that the set may cost; no limit if ``None``.

        Raises:
            TierwiseError: no set costs so little, or none was found in a minute.
        """
        if budget is not None and budget < self.least_cost:
            raise TierwiseError(
                f"--budget: the least that databases must have costs {self.least_cost:,.2f} a month",
                "give a greater budget, or a greater p99 in --weights",
            )
        worth = self._undominated(gains)
        if budget is None:
            return self._choice(np.where(worth, gains, -np.inf), gains, 0.0)
        worth &= core(self._costs, gains, self._starts, budget)
        scale = _SCALE / max(float(np.abs(gains[worth]).max()), 1e-12)
        with _silent():
            found = self._optimize.milp(
                -scale * gains,
                integrality=np.ones(len(gains)),
                bounds=self._optimize.Bounds(0, worth.astype(np.float64)),
                constraints=[
                    self._optimize.LinearConstraint(self._one_each, 1, 1),
                    self._optimize.LinearConstraint(self._costs[np.newaxis, :], -np.inf, budget),
                ],
                options={"mip_rel_gap": 0.0, "time_limit": _MOST_S},
            )
        if found.x is None:
            raise TierwiseError(f"the best set of moves: {found.message}", "give fewer devices or recordings")
        gap = float(found.mip_gap or 0.0)
        return self._choice(found.x, gains, gap if gap > _ROUNDING else 0.0)

    def gain(self, options: Sequence[int], gains: Floats) -> float:
        """Gain of a set, by the gains of every option."""
        return float(gains[self._starts + np.array(options)].sum())

    def _undominated(self, gains: Floats) -> NDArray[np.bool_]:
        """Options that no option of the same database equals for less, or for the same."""
        kept = np.zeros(len(gains), dtype=np.bool_)
        for start, end in zip(self._starts, self._ends, strict=True):
            most = -np.inf
            for number in sorted(range(start, end), key=lambda one: (self._costs[one], -gains[one])):
                if gains[number] > most:
                    kept[number], most = True, gains[number]
        return kept

    def _choice(self, preferred: Floats, gains: Floats, gap: float) -> Choice:
        options = tuple(int(np.argmax(one)) for one in np.split(preferred, self._ends[:-1]))
        cost = float(self._costs[self._starts + np.array(options)].sum())
        return Choice(options, self.gain(options, gains), cost, gap)


@contextmanager
def _silent() -> Iterator[None]:
    """Keep standard output clean: HiGHS of scipy 1.17.1 prints lines there that no option stops."""
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # its lines are in the buffer of C's standard output
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
