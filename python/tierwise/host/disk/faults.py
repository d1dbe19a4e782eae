"""Faults of an emulated disk: a power cut, device failure, a slow phase, unreadable sectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tierwise.device_models.profiles import Profile
from tierwise.model.errors import TierwiseError
from tierwise.model.units import SECTOR_BYTES
from tierwise.results import Record

Precondition = Literal["fresh", "sequential", "random"]

_LONGEST_S = 365 * 86_400.0
_LARGEST_FACTOR = 1e6


class CutReport(Record):
    """Result of a power cut.

    Unflushed writes touched ``unflushed_sectors`` sectors. ``kept_sectors`` of them hold the data of one of
    these writes; ``lost_sectors`` hold the data from before. A torn write has both kept and lost sectors.
    """

    unflushed_writes: int
    unflushed_sectors: int
    kept_sectors: int
    lost_sectors: int
    torn_writes: int
    failed_requests: int


@dataclass(frozen=True)
class Faults:
    """Faults that are active from the moment a disk is up; see the methods of ``EmulatedDisk``."""

    fail_after_s: float | None = None
    fail_after_requests: int | None = None
    slow_factor: float = 1
    slow_for_s: float = 0
    unreadable: Sequence[range] = ()
    """Sector ranges on the whole device."""

    def commands(self, size_bytes: int) -> list[tuple[str, dict[str, Any]]]:
        """Server commands that set up these faults on a device of ``size_bytes``.

        Raises:
            TierwiseError: if a value is out of range.
        """
        whole = {"name": "the device", "size_bytes": size_bytes}
        commands = [
            ("unreadable", unreadable(sectors.start, sectors.stop - 1, whole, 0))
            for sectors in self.unreadable
        ]
        if self.slow_for_s or self.slow_factor != 1:
            commands.append(("slow", slow(self.slow_factor, self.slow_for_s)))
        if self.fail_after_s is not None or self.fail_after_requests is not None:
            commands.append(("fail", fail(self.fail_after_s, self.fail_after_requests)))
        return commands


def fail(after_s: float | None, after_requests: int | None) -> dict[str, Any]:
    """Arguments of the server's command; with neither argument the device fails at once."""
    if after_s is not None and after_requests is not None:
        raise TierwiseError("a disk fails after a time or after requests, not both", "give one of them")
    if after_requests is not None:
        if after_requests < 0:
            raise TierwiseError(f"a disk cannot fail after {after_requests} requests", "use 0 or more")
        return {"after": {"requests": after_requests}}
    return {"after": {"seconds": _seconds("a disk fails after", after_s or 0.0)}}


def slow(factor: float, for_s: float) -> dict[str, Any]:
    """Arguments of the server's command."""
    if not 1 <= factor <= _LARGEST_FACTOR:
        raise TierwiseError(f"a disk cannot be slowed by a factor of {factor:g}", "use 1 to 1,000,000")
    return {"factor": factor, "length_s": _seconds("a disk is slow for", for_s)}


def unreadable(first: int, last: int, partition: dict[str, Any], start_bytes: int) -> dict[str, Any]:
    """Arguments of the server's command, for sectors of a partition that starts at byte ``start_bytes``."""
    sectors = partition["size_bytes"] // SECTOR_BYTES
    if not 0 <= first <= last < sectors:
        raise TierwiseError(
            f"sectors {first}-{last} are no range within {partition['name']!r}", f"use 0-{sectors - 1}"
        )
    start = start_bytes // SECTOR_BYTES
    return {"first": start + first, "last": start + last}


def _seconds(what: str, seconds: float) -> float:
    if not (math.isfinite(seconds) and 0 <= seconds <= _LONGEST_S):
        raise TierwiseError(f"{what} {seconds:g} s", f"use 0 to {_LONGEST_S:,.0f} s")
    return seconds


def require_possible(profile: Profile, lies_about_flush: bool, precondition: str) -> None:
    """Refuse a combination that a disk of this profile cannot have.

    Raises:
        TierwiseError: naming the profile or the word.
    """
    if lies_about_flush and not profile.write_cache:
        raise TierwiseError(
            f"{profile.name} has no volatile write cache to lie about",
            "use a profile with write_cache = true",
        )
    if precondition not in get_args(Precondition):
        raise TierwiseError(
            f"a disk cannot start {precondition!r}", f"use {', '.join(get_args(Precondition))}"
        )
