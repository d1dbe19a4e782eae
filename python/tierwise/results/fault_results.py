"""Results of power cuts and of deaths of devices under load: losses, damage, recovery."""

from __future__ import annotations

from typing import Literal

from tierwise.model.placement import Role
from tierwise.results.measurements import NotNegative, NotNegativeCount, OneLine, StrictModel

Outcome = Literal["whole", "lost", "damaged"]


class IntegrityCheck(StrictModel):
    """The engine's own check of its files; no problem means that it passed."""

    name: str
    problems: list[OneLine] = []


class InjectedFault(StrictModel):
    """A power cut or the death of a device, and what was found after it."""

    seed: int
    """Of the moment of the fault, and of the sectors that a cut keeps."""
    load_s: NotNegative
    """From the first acknowledged commit to the cut, or to the stop of the engine just after the death."""
    commits: NotNegativeCount
    """Acknowledged in that time."""
    recovery_s: NotNegative | None = None
    """From power-on until the engine answers, with all steps; devices answer at once. Absent if never."""
    damage: OneLine | None = None
    """Why the database is not what whole transactions make it: it does not start, or a check fails."""
    check: IntegrityCheck | None = None
    """Absent if the engine did not start, or could not read the commits."""


class PowerCut(InjectedFault):
    """One power cut and what was found after it."""

    unflushed_sectors: NotNegativeCount
    """Written and not flushed when the power went, on all devices together."""
    kept_sectors: NotNegativeCount
    """Of these, survived."""
    torn_writes: NotNegativeCount
    lost: NotNegativeCount = 0
    """Acknowledged commits that are gone."""
    oldest_lost_ms: float | None = None
    """Age at the cut of the oldest of these."""
    whole_load: bool = False
    """Whether the first commit of the load is among them: a longer load would have lost more."""

    @property
    def outcome(self) -> Outcome:
        """Damage counts before loss."""
        return "damaged" if self.damage else "lost" if self.lost else "whole"

    @property
    def needs_new_database(self) -> bool:
        """Whether the next cut cannot use this database."""
        return self.damage is not None


class PowerCuts(StrictModel):
    """The power cuts of one run, all with one durability setting."""

    durability: str
    """Name of the setting."""
    durable: bool
    """Whether the engine promises that acknowledged commits survive a cut."""
    promise: str
    clean_start_s: NotNegative
    """Start of the engine after a clean stop, on devices that answer at once; compare with ``recovery_s``."""
    cuts: list[PowerCut]


Start = Literal["as_is", "salvaged", "never"]
DeathOutcome = Literal["whole", "lost", "damaged", "gone"]


class DeviceDeath(InjectedFault):
    """The death of one device, its replacement by a blank one, and what was found after it."""

    ran_on: bool
    """Whether clients still got acknowledgements until the engine was stopped."""
    start: Start
    """Whether the engine starts with the blank device as it is, after its makers' salvage step, or never."""
    refused: OneLine | None = None
    """Why starting as it is was not enough; absent if it was, or was not tried."""
    salvage: str | None = None
    """The step after which it started, or the last one tried."""
    acknowledged: NotNegativeCount
    """Commits that the database had to hold, of this load and of earlier ones."""
    lost: NotNegativeCount
    """Of these, gone: all of them if the engine does not start or cannot read them."""

    @property
    def outcome(self) -> DeathOutcome:
        """A database that does not start counts before damage, and damage before loss."""
        if self.start == "never":
            return "gone"
        return "damaged" if self.damage else "lost" if self.lost else "whole"

    @property
    def needs_new_database(self) -> bool:
        """Whether the next death cannot use this database."""
        return self.outcome != "whole" or self.start != "as_is"


class DeviceDeaths(StrictModel):
    """The deaths of one run, all of the device of one role."""

    role: Role
    clean_start_s: NotNegative
    """Start of the engine after a clean stop, on devices that answer at once; compare with ``recovery_s``."""
    deaths: list[DeviceDeath]
