"""A database under a load of commits, of which the device of one role dies for good."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tierwise.engines.commits import SQL_INDEX
from tierwise.engines.documented import Salvage, guide
from tierwise.host import users
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import new_folder
from tierwise.model.placement import Role
from tierwise.results import DeviceDeath, IntegrityCheck
from tierwise.results.faults import Start
from tierwise.studies.runner.commit_books import Books, Load
from tierwise.studies.runner.fault_bed import FaultBed
from tierwise.studies.runner.storage import Storage

LINGER_S = 0.5
"""The engine is stopped so long after the death: until then clients see whether it still takes commits."""


@dataclass(frozen=True)
class Attempt:
    """One attempt to start without the files that died; ``step`` is ``None`` for a start as it is."""

    step: Salvage | None
    books: Books
    spent_s: float = 0
    """Until the engine answered or gave up."""
    started: bool = False
    lost: int | None = None
    """Acknowledged commits that are gone; absent if they could not be read."""
    damage: str | None = None
    check: IntegrityCheck | None = None

    @property
    def rank(self) -> int:
        """0 for a whole database, 1 for a damaged one, 2 for none."""
        return 2 if not self.started else 1 if self.damage else 0


@dataclass
class DeathBed(FaultBed):
    """The device of one role dies, and a blank one takes its place; the other devices keep all they hold."""

    storage: Storage = field(kw_only=True)

    def prepare(self) -> None:
        """Make the tables, and an index if the engine places indexes apart."""
        super().prepare()
        if Role.INDEX in self.engine.roles:
            self.engine.execute_schema([SQL_INDEX])
            self.engine.checkpoint()

    def die(self, role: Role, seed: int, longest_s: float) -> DeviceDeath:
        """Load, let the device of a role die at a random moment, replace it, start, and compare.

        The replacement is an empty file system that holds the engine's directory, empty. Devices answer at
        once while the engine starts.

        Args:
            role: whose device dies, with every other role on it.
            seed: of the moment.
            longest_s: of the load before the death.

        Raises:
            TierwiseError: if the load fails before the death, or the device cannot be replaced.
        """
        device = self.storage.role_devices[role]

        def device_dies() -> int:
            self.storage.emulated[device].fail()
            time.sleep(LINGER_S)
            return time.monotonic_ns()

        load = self.load_until(device_dies, Random(seed), longest_s)
        self.storage.replace(device)
        self.set_timing(False)
        for gone in self.storage.roles_on(device):
            new_folder(self.engine.directories[gone], owner=users.ids(users.server_user()))
        death = self._start_again(role, seed, load)
        self.set_timing(True)
        return death

    def _start_again(self, role: Role, seed: int, load: Load) -> DeviceDeath:
        """Try each way to start until one serves."""
        known, owed = guide(self.engine), len(self.books.kept | load.acknowledged().keys())
        attempts: list[Attempt] = []
        for step in known.attempts(role):
            attempts.append(self._attempt(step, load, known.use.get(role)))
            if attempts[-1].rank == 0 or (step is not None and attempts[-1].started):
                break
        self.books = min(attempts, key=lambda one: one.rank).books
        return described(seed, load, attempts, owed)

    def _attempt(self, step: Salvage | None, load: Load, use: str | None) -> Attempt:
        """Start as it is or by a step, compare the commits, check, and use files that these do not need."""
        books, found = replace(self.books), dict[str, Any]()
        self.engine.crash_stop()
        began_s = time.monotonic()
        try:
            if step is None:
                self.engine.start()
            else:
                self.engine.start_salvaged(step)
            found |= {"started": True, "spent_s": time.monotonic() - began_s}
            loss, check, damage = self.compare(books, load)
            found |= {"lost": loss.commits, "check": check, "damage": damage}
            if use is not None:
                self.engine.execute_schema([(Role.SYSTEM, use)])
        except (TierwiseError, OSError) as error:
            found.setdefault("spent_s", time.monotonic() - began_s)
            found["damage"] = error.message if isinstance(error, TierwiseError) else str(error)
        return Attempt(step, books, **found)


def described(seed: int, load: Load, attempts: Sequence[Attempt], owed: int) -> DeviceDeath:
    """The record of a death: the best of the attempts, of equal ones the first.

    Args:
        seed: of the moment.
        load: the commits.
        attempts: in their order.
        owed: commits that the database had to hold.
    """
    best, first = min(attempts, key=lambda one: one.rank), attempts[0]
    start: Start = "never" if not best.started else "as_is" if best.step is None else "salvaged"
    tried = best.step or attempts[-1].step
    linger_ns = int(LINGER_S * 1e9)
    return DeviceDeath(
        seed=seed,
        load_s=load.seconds,
        commits=load.counted,
        ran_on=any(at > load.cut_ns - linger_ns // 2 for times in load.acknowledged_ns for at in times),
        start=start,
        refused=first.damage if first.step is None else None,
        salvage=tried.step if tried else None,
        recovery_s=sum(one.spent_s for one in attempts[: attempts.index(best) + 1]) if best.started else None,
        acknowledged=owed,
        lost=owed if best.lost is None else best.lost,
        damage=best.damage,
        check=best.check,
    )
