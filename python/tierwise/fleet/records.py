"""The advice for a fleet as records: its moves, and logs of several databases on shared devices."""

from __future__ import annotations

from tierwise.advise.costs import PriceSource
from tierwise.fleet.database_options import FleetOption
from tierwise.fleet.fleet_databases import SkippedRecording
from tierwise.model.placement import Role
from tierwise.predict import Estimate
from tierwise.results.measurements import StrictModel


class DatabaseMove(StrictModel):
    """One role of one database to a device."""

    database: str
    """Name of the database."""
    role: Role
    device: str


class SharedDatabase(StrictModel):
    """One database whose log is on a shared device."""

    database: str
    roles: list[Role]
    """Roles on it, the log among them."""
    unit: str
    """What rates count."""
    rate_alone_per_s: Estimate | None
    """With a device of its own."""
    rate_per_s: Estimate | None
    """With the others at work on the shared device."""
    kept: Estimate
    """The second over the first; the interval is the range over the seeds."""
    p99_alone_us: Estimate | None
    """99th percentile of the latency with a device of its own, in microseconds."""
    p99_us: Estimate | None
    """The same on the shared device."""


class SharedDevice(StrictModel):
    """One device for the logs of several databases."""

    name: str
    """With its number, as in a placement: ``ssd-nvme-dc#1``."""
    databases: list[SharedDatabase]
    """Those whose logs are on it."""
    size_bytes: int
    """Of the recorded files on it."""
    cost_per_month: float
    """Of the one device."""
    separate_cost_per_month: float
    """Of a device for each database."""
    saved_per_month: float
    """The second less the first."""


class SeparateLog(StrictModel):
    """A log that has a new device to itself."""

    database: str
    device: str
    reason: str
    """Why it shares none."""


class FleetSharing(StrictModel):
    """The best set with the logs that it moves packed on shared devices, and what the saved money buys."""

    least_kept: float
    """Share of its rate that each database keeps at least, under every seed."""
    most_databases: int
    """Most databases on one device."""
    devices: list[SharedDevice]
    separate: list[SeparateLog]
    """Logs on new devices that are not shared."""
    saved_per_month: float
    """By all shared devices, over a device for each of their databases."""
    cost_per_month: float
    """Of the whole set, more than is paid now."""
    gain: float
    """Of the whole set, with what sharing costs in speed."""
    gain_share: float | None
    """Over the gain of the best set without a budget; null if nothing could be gained."""
    begun: list[DatabaseMove]
    """Moves that the best set without sharing does not have."""
    ended: list[DatabaseMove]
    """Moves of that set that this one does not have."""
    replays: int
    """Joint replays that were made."""


class FleetMove(DatabaseMove):
    """A move, and how sure it is."""

    chosen: bool
    """Whether it is in the best set."""
    draws_share: float
    """Share of the draws in which it is in the best set."""


class FleetDatabase(StrictModel):
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
    """Why its recording is not usable and what to do, so that its files stay; empty if it is."""
    importance: float
    """Factor of its gain."""
    must_have_p99_us: float | None
    """99th percentile of the latency that it must have, in microseconds; null if it may have any."""
    p99_missed: bool
    """Whether no option is predicted to reach that."""
    options: list[FleetOption]
    """Those that it may have: the recorded placement, unless its p99 is too high, then others by cost.

    An unusable recording has the recorded placement alone.
    """
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


class BudgetPoint(StrictModel):
    """The best set for one budget."""

    budget_per_month: float
    """The budget."""
    cost_per_month: float
    """Cost of the best set."""
    gain_share: float
    """Its share of all that could be gained."""


class ExtraBudget(StrictModel):
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


class FleetRemark(StrictModel):
    """A sentence on some databases."""

    text: str
    databases: list[str]
    """Their names."""


class FleetAdvice(StrictModel):
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
    left_out: list[SkippedRecording]
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
    curve: list[BudgetPoint]
    """The best set for other budgets, ascending."""
    next: ExtraBudget | None
    """What more money would buy; null without a budget."""
    sharing: FleetSharing | None = None
    """The set with logs on shared devices; null if that was not asked for."""
    draws: int
    """How often speed-ups were drawn from their intervals."""
    seed: int
    """Of the draws."""
    prices: list[PriceSource]
    """Source and date of the price of each device."""
    notes: list[FleetRemark]
    """Further sentences."""
    warnings: list[FleetRemark]
    """What limits the trust in the figures."""
