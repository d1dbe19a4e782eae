"""The advice for a fleet, as records."""

from __future__ import annotations

from tierwise.advise.sources import UsedPrice
from tierwise.fleet.catalogue import LeftOutRecording
from tierwise.fleet.moves import DatabaseMove
from tierwise.fleet.options import FleetOption
from tierwise.fleet.sharing_records import FleetSharing
from tierwise.predict import Estimate
from tierwise.results.measurements import Record


class FleetMove(DatabaseMove):
    """A move, and how sure it is."""

    chosen: bool
    """Whether it is in the best set."""
    draws_share: float
    """Share of the draws in which it is in the best set."""


class FleetDatabase(Record):
    """One database, its options and the one that the best set has."""

    name: str
    """Name of the database."""
    uri: str
    """Path or URI of its recording."""
    engine: str
    engine_version: str | None
    unit: str
    """What rates count."""
    unusable: list[str]
    """Why its recording is not usable and what to do; empty if it is."""
    importance: float
    """Factor of its gain."""
    must_have_p99_us: float | None
    """99th percentile of the latency that it must have, in microseconds; null if it may have any."""
    p99_missed: bool
    """Whether no option is predicted to reach that."""
    options: list[FleetOption]
    """Those that it may have: the recorded placement, unless its p99 is too high, then others by cost."""
    chosen: int
    """Index of the option in the best set."""

    @property
    def option(self) -> FleetOption:
        """Its option in the best set."""
        return self.options[self.chosen]

    def moves(self, number: int) -> list[DatabaseMove]:
        """The moves of one of its options."""
        places = self.options[number].placement.items()
        return [DatabaseMove(database=self.name, role=role, device=device) for role, device in places]


class Curve(Record):
    """The best set for one budget."""

    budget_per_month: float
    """The budget."""
    cost_per_month: float
    """Cost of the best set."""
    gain_share: float
    """Its share of all that could be gained."""


class NextMoney(Record):
    """What more money would buy."""

    more_per_month: float
    """How much more than the budget."""
    cost_per_month: float
    """Cost of the best set then, more than that of the best set now."""
    gain_share: float
    """What it gains more, as a share of all that could be gained."""
    begun: list[DatabaseMove]
    """Moves in that set only."""
    ended: list[DatabaseMove]
    """Moves in the present set only."""


class FleetRemark(Record):
    """A sentence on some databases."""

    text: str
    databases: list[str]
    """Their names."""


class FleetAdvice(Record):
    """The best set of moves of a fleet under one budget."""

    devices: list[str]
    """Candidate devices."""
    currency: str
    budget_per_month: float | None
    """Most that all moves together may cost more than is paid now; null without a limit."""
    databases: list[FleetDatabase]
    """Those that were advised on."""
    frozen: list[str]
    """Names of databases that stay as they are, by the weights."""
    left_out: list[LeftOutRecording]
    """Recordings that could not be used."""
    gain: float
    """Of the best set: the sum over databases of importance times the share of a transaction's time saved."""
    full_gain: float
    """Of the best set without a budget."""
    gain_share: Estimate | None
    """The first over the second, with its interval over the draws; null if nothing could be gained."""
    cost_per_month: float
    """Of the best set."""
    full_cost_per_month: float
    """Of the best set without a budget."""
    gap: float
    """How much more another set may gain at most, as a share; 0 if this one is proved to be the best."""
    moves: list[FleetMove]
    """Those of the best set, then others that are in the best set of any draw, the surest first."""
    curve: list[Curve]
    """The best set for other budgets, ascending."""
    next: NextMoney | None
    """What more money would buy; null without a budget."""
    sharing: FleetSharing | None = None
    """The set with logs on shared devices; null if that was not asked for."""
    draws: int
    """How often speed-ups were drawn from their intervals."""
    seed: int
    """Of the draws."""
    prices: list[UsedPrice]
    """Source and date of the price of each device."""
    notes: list[FleetRemark]
    """Further sentences."""
    warnings: list[FleetRemark]
    """What limits the trust in the figures."""
