"""Results of power cuts under load: what was lost, what was damaged, how long recovery took."""

from __future__ import annotations

from typing import Literal

from tierwise.results.measurements import Record

Outcome = Literal["whole", "lost", "damaged"]


class IntegrityCheck(Record):
    """The engine's own check of its files; no problem means that it passed."""

    name: str
    problems: list[str] = []  # noqa: RUF012  (a pydantic model copies its defaults)


class PowerCut(Record):
    """One power cut and what was found after it."""

    seed: int
    """Of the moment of the cut, and of the sectors kept."""
    load_s: float
    """From the first acknowledged commit to the cut."""
    commits: int
    """Acknowledged in that time."""
    unflushed_sectors: int
    """Written and not flushed when the power went, on all devices together."""
    kept_sectors: int
    """Of these, survived."""
    torn_writes: int
    recovery_s: float | None = None
    """From power-on until the engine answers, the devices answering at once; absent if it did not start."""
    lost: int = 0
    """Acknowledged commits that are gone."""
    oldest_lost_ms: float | None = None
    """Age at the cut of the oldest of these."""
    whole_load: bool = False
    """Whether the first commit of the load is among them: a longer load would have lost more."""
    damage: str | None = None
    """Why the database is not what whole transactions make it: it does not start, or a check fails."""
    check: IntegrityCheck | None = None
    """Absent if the engine did not start."""

    @property
    def outcome(self) -> Outcome:
        """Damage counts before loss."""
        return "damaged" if self.damage else "lost" if self.lost else "whole"

    @property
    def needs_new_database(self) -> bool:
        """Whether the next cut cannot use this database."""
        return self.damage is not None


class PowerCuts(Record):
    """The power cuts of one run, all with one durability setting."""

    durability: str
    """Name of the setting."""
    durable: bool
    """Whether the engine promises that acknowledged commits survive a cut."""
    promise: str
    clean_start_s: float
    """Start of the engine after a clean stop, on devices that answer at once; compare with ``recovery_s``."""
    cuts: list[PowerCut]
