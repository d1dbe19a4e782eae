"""What studies have shown of the death of one role's device, as counts and in words."""

# ruff: noqa: RUF012  (every record is a pydantic model, which copies its defaults)

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from tierwise.advise.durability import NOT_TESTED, read_shown
from tierwise.model.input_files import DATA
from tierwise.model.placement import Role
from tierwise.results.measurements import Record

DEATHS_FILE = DATA / "device-deaths.json"


class DeathCounts(Record):
    """Deaths of the device of one role under one engine, by what came of them."""

    engine: str
    role: Role
    deaths: int
    as_is: int
    """The engine started with a blank device as it was."""
    salvaged: int
    """It started after the step that its documentation gives for lost files."""
    never: int
    """It did not start: a backup is needed."""
    lost: int
    """The engine started, and acknowledged commits were gone."""
    damaged: int
    """The engine started, and its database was not what whole transactions make it."""
    steps: list[str] = []
    """The steps after which it started."""

    @property
    def words(self) -> str:
        """Such as ``starts only after pg_resetwal -f; 3 of 3 deaths lost acknowledged commits``."""
        parts = [self._start()]
        if self.damaged:
            parts.append(f"{self.damaged} of {self.deaths} deaths left a damaged database")
        if self.lost:
            parts.append(f"{self.lost} of {self.deaths} deaths lost acknowledged commits")
        if not (self.lost or self.damaged or self.never):
            parts.append(f"0 of {self.deaths} deaths lost an acknowledged commit")
        return "; ".join(parts)

    def _start(self) -> str:
        if self.never == self.deaths:
            return f"does not start again in {self.never} of {self.deaths} deaths: restore a backup"
        if self.as_is == self.deaths:
            return "starts as it is"
        step = f"starts only after {' or '.join(self.steps)}"
        if self.salvaged == self.deaths:
            return step
        counts = {"starts as it is": self.as_is, step: self.salvaged, "does not start again": self.never}
        return ", ".join(f"{what} in {count} of {self.deaths}" for what, count in counts.items() if count)


class ShownDeaths(Record):
    """What the shipped studies of deaths found; written by ``benchmarks/device_deaths.py``."""

    deaths: list[DeathCounts] = []


def deaths_shown(engine: str, roles: Collection[Role]) -> dict[Role, str]:
    """What the death of the device of each role did to an engine in a study, or ``not tested``."""
    known = {(death.engine, death.role): death.words for death in shipped_deaths().deaths}
    return {role: known.get((engine, role), NOT_TESTED) for role in roles}


@lru_cache(maxsize=1)
def shipped_deaths() -> ShownDeaths:
    """The shipped findings; none if there is no file.

    Raises:
        TierwiseError: if the file is not of this version.
    """
    return read_shown(DEATHS_FILE, ShownDeaths)
