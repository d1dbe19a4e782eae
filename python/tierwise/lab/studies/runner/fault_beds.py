"""A load of commits on emulated devices that lose power or die, and the books of what was acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tierwise.host import users
from tierwise.host.disk.disk import EmulatedDisk, PowerCutReport
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.commit_load import (
    ITEMS,
    MOST_COMMITS,
    SQL_INDEX,
    CommitLedger,
    FoundCommits,
    item_of_commit,
)
from tierwise.lab.engines.engine_documentation import SalvageStep
from tierwise.lab.studies.runner.run_storage import RunStorage
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import make_new_folder
from tierwise.model.placement import Role
from tierwise.results import DeviceDeath, IntegrityCheck
from tierwise.results.fault_results import PowerCut, Start

Commit = tuple[int, int]
"""Client and number."""


@dataclass(frozen=True)
class CommitLoad:
    """The commits of one load up to a power cut."""

    first: int
    """The number that every client began with."""
    begun: Sequence[int]
    """Commits begun, by client."""
    acknowledged_ns: Sequence[Sequence[int]]
    """Times of the acknowledgements in their order, by client."""
    cut_ns: int
    """When the power went; what was acknowledged later was acknowledged by nobody."""

    @property
    def started_ns(self) -> int:
        """When the first commit was acknowledged."""
        return min(times[0] for times in self.acknowledged_ns if times)

    @property
    def seconds(self) -> float:
        """From then to the cut."""
        return (self.cut_ns - self.started_ns) / 1e9

    @property
    def counted(self) -> int:
        """Commits acknowledged in that time, after the one that starts it."""
        return sum(self.started_ns < at < self.cut_ns for times in self.acknowledged_ns for at in times)

    def acknowledged(self) -> dict[Commit, int]:
        """Time of every acknowledgement before the cut."""
        return {
            (client, self.first + index): at
            for client, times in enumerate(self.acknowledged_ns)
            for index, at in enumerate(times)
            if at < self.cut_ns
        }

    def may_be_there(self, commit: Commit) -> bool:
        """Whether a client began this commit."""
        client, number = commit
        return client < len(self.begun) and self.first <= number < self.first + self.begun[client]


@dataclass(frozen=True)
class CommitLoss:
    """Acknowledged commits that are gone."""

    commits: int = 0
    oldest_ms: float | None = None
    """Age at the cut."""
    whole_load: bool = False
    """Whether the first commit of the load is among them, so that a longer load would have lost more."""


@dataclass
class CommitBooks:
    """What the database must hold: the commits found after the last cut, and those acknowledged since."""

    clients: int
    kept: set[Commit] = field(default_factory=set)

    def settle(self, load: CommitLoad, state: FoundCommits) -> tuple[CommitLoss, str | None]:
        """Compare after a cut, and keep what was found.

        Returns:
            The loss, and what cannot have come from whole transactions, if anything.
        """
        present = {(client, number) for client, number in state.done}
        acknowledged = load.acknowledged()
        lost = (self.kept | acknowledged.keys()) - present
        damage = self._damage(load, state, present)
        self.kept = present
        if not lost:
            return CommitLoss(), damage
        oldest_ns = min(acknowledged.get(commit, load.started_ns) for commit in lost)
        return CommitLoss(len(lost), (load.cut_ns - oldest_ns) / 1e6, oldest_ns <= load.started_ns), damage

    def _damage(self, load: CommitLoad, state: FoundCommits, present: Collection[Commit]) -> str | None:
        if len(present) != len(state.done):
            return "a row is there twice"
        strange = [commit for commit in present if commit not in self.kept and not load.may_be_there(commit)]
        if strange:
            return f"{len(strange)} rows are there that nobody inserted"
        if sorted(item for item, _, _ in state.items) != list(range(self.clients * ITEMS)):
            return f"{len(state.items)} items are there instead of {self.clients * ITEMS}"
        last: dict[int, int] = {}
        for client, number in present:
            item = item_of_commit(client, number)
            last[item] = max(last.get(item, -1), number)
        torn = [item for item, number, whole in state.items if not whole or number != last.get(item, -1)]
        return f"{len(torn)} items do not hold their last commit: half a transaction" if torn else None


_EARLIEST = 0.2
"""A fault comes after this share of the longest load at the earliest."""
_CONNECT_TIMEOUT_S = 60
_POLL_S = 0.002


class _Client(threading.Thread):
    """One session of the load; ``error`` is what ended it."""

    def __init__(self, engine: Engine, ledger: CommitLedger, number: int, first: int) -> None:
        super().__init__(daemon=True)
        self.error: TierwiseError | None = None
        self._work = (engine, ledger, number, first)
        self.start()

    def run(self) -> None:
        engine, ledger, number, first = self._work
        try:
            engine.commit_until_it_fails(ledger, number, first)
        except TierwiseError as error:
            self.error = error


@dataclass
class FaultBed:
    """A running engine with its tables of commits on ``disks``."""

    engine: Engine
    disks: Collection[EmulatedDisk]
    clients: int
    settle_s: float = 0
    """Wait before each load: a device that lies about flushes has then written back all that came before."""
    books: CommitBooks = field(init=False)
    _first: int = 0

    def __post_init__(self) -> None:
        """Open empty books."""
        self.books = CommitBooks(self.clients)

    def prepare(self) -> None:
        """Make the tables; the devices answer at once meanwhile, and at their models' pace afterwards."""
        self.engine.make_commit_tables(self.clients)
        self.engine.checkpoint()
        self.set_timing(True)

    def set_timing(self, on: bool) -> None:
        """Make every device answer at its model's pace, or at once."""
        for disk in self.disks:
            disk.set_timing(on)

    def load_until(self, fault: Callable[[], int], dice: Random, longest_s: float) -> CommitLoad:
        """Let clients commit, cause a fault at a random moment, and stop the engine as it then stands.

        Args:
            fault: causes it; gives the time in ns from which on nobody hears of an acknowledgement.

        Raises:
            TierwiseError: if the load fails before the fault.
        """
        time.sleep(self.settle_s)
        ledger = self.engine.commit_ledger(self.clients)
        first, self._first = self._first, self._first + MOST_COMMITS
        clients = [_Client(self.engine, ledger, number, first) for number in range(self.clients)]
        try:
            _await_first_commit(clients, ledger)
            time.sleep(dice.uniform(_EARLIEST, 1) * longest_s)
            _require_alive(clients)
            end_ns = fault()
        finally:
            self.engine.crash_stop()
            for client in clients:
                client.join()
        numbers = range(self.clients)
        return CommitLoad(
            first, [ledger.begun(n) for n in numbers], [ledger.acknowledged_ns(n) for n in numbers], end_ns
        )

    def compare(self, books: CommitBooks, load: CommitLoad) -> tuple[CommitLoss, IntegrityCheck, str | None]:
        """What is gone of the acknowledged commits, the engine's own check, and the damage that either found.

        Raises:
            TierwiseError: if the database cannot be read.
        """
        loss, damage = books.settle(load, self.engine.found_commits())
        check = self.engine.check()
        return loss, check, damage or next(iter(check.problems), None)


def _await_first_commit(clients: Collection[_Client], ledger: CommitLedger) -> None:
    """Wait for the first acknowledgement; a client may still wait for another's lock to open its session."""
    deadline_s = time.monotonic() + _CONNECT_TIMEOUT_S
    numbers = range(len(clients))
    while not any(map(ledger.acknowledged_ns, numbers)):
        _require_alive(clients)
        if time.monotonic() > deadline_s:
            raise TierwiseError(
                f"no commit within {_CONNECT_TIMEOUT_S} s",
                "use fewer clients, or a faster device",
            )
        time.sleep(_POLL_S)


def _require_alive(clients: Collection[_Client]) -> None:
    for client in clients:
        if client.error is not None:
            raise TierwiseError(f"a client failed before the fault: {client.error.message}", client.error.fix)


@dataclass
class PowerCutBed(FaultBed):
    """Every device's power is cut at once."""

    def cut(self, seed: int, longest_s: float) -> PowerCut:
        """Load, cut the power at a random moment, recover with devices that answer at once, and compare.

        Args:
            seed: of the moment, and of the unflushed sectors that survive.

        Returns:
            The cut; after one with ``damage`` the database is of no further use.

        Raises:
            TierwiseError: if the load fails while the power is on.
        """
        dice, reports = Random(seed), list[PowerCutReport]()

        def power_goes() -> int:
            """Cut the devices one right after the other, in random order."""
            cut_ns = time.monotonic_ns()
            for disk in dice.sample(list(self.disks), len(self.disks)):
                reports.append(disk.cut(keep_random=True, seed=dice.getrandbits(32), remount=False))
            return cut_ns

        load = self.load_until(power_goes, dice, longest_s)
        cut = PowerCut(
            seed=seed,
            load_s=load.seconds,
            commits=load.counted,
            unflushed_sectors=sum(report.unflushed_sectors for report in reports),
            kept_sectors=sum(report.kept_sectors for report in reports),
            torn_writes=sum(report.torn_writes for report in reports),
        )
        self.set_timing(False)
        state: dict[str, object] = {}
        try:
            started_s = time.monotonic()
            for disk in self.disks:
                disk.remount()
            self.engine.start()
            state["recovery_s"] = time.monotonic() - started_s
            loss, check, damage = self.compare(self.books, load)
            state |= {"lost": loss.commits, "oldest_lost_ms": loss.oldest_ms, "whole_load": loss.whole_load}
            state |= {"check": check, "damage": damage}
        except (TierwiseError, OSError) as error:
            state["damage"] = error.message if isinstance(error, TierwiseError) else str(error)
        self.set_timing(True)
        return cut.changed(**state)


LINGER_S = 0.5
"""The engine is stopped so long after the death: until then clients see whether it still takes commits."""


@dataclass(frozen=True)
class StartAttempt:
    """One attempt to start without the files that died; ``step`` is ``None`` for a start as it is."""

    step: SalvageStep | None
    books: CommitBooks
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
class DeviceDeathBed(FaultBed):
    """The device of one role dies, and a blank one takes its place; the other devices keep all they hold."""

    storage: RunStorage = field(kw_only=True)

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
            make_new_folder(self.engine.directories[gone], owner=users.account_ids(users.server_user()))
        death = self._start_again(role, seed, load)
        self.set_timing(True)
        return death

    def _start_again(self, role: Role, seed: int, load: CommitLoad) -> DeviceDeath:
        """Try each way to start until one serves."""
        known, owed = self.engine.guide(), len(self.books.kept | load.acknowledged().keys())
        attempts: list[StartAttempt] = []
        for step in known.attempts(role):
            attempts.append(self._attempt(step, load, known.use.get(role)))
            if attempts[-1].rank == 0 or (step is not None and attempts[-1].started):
                break
        self.books = min(attempts, key=lambda attempt: attempt.rank).books
        return death_record(seed, load, attempts, owed)

    def _attempt(self, step: SalvageStep | None, load: CommitLoad, use: str | None) -> StartAttempt:
        """Start as it is or by a step, compare the commits, check, and use files that these do not need."""
        books, state = replace(self.books), dict[str, Any]()
        self.engine.crash_stop()
        began_s = time.monotonic()
        try:
            if step is None:
                self.engine.start()
            else:
                self.engine.start_salvaged(step)
            state |= {"started": True, "spent_s": time.monotonic() - began_s}
            loss, check, damage = self.compare(books, load)
            state |= {"lost": loss.commits, "check": check, "damage": damage}
            if use is not None:
                self.engine.execute_schema([(Role.SYSTEM, use)])
        except (TierwiseError, OSError) as error:
            state.setdefault("spent_s", time.monotonic() - began_s)
            state["damage"] = error.message if isinstance(error, TierwiseError) else str(error)
        return StartAttempt(step, books, **state)


def death_record(seed: int, load: CommitLoad, attempts: Sequence[StartAttempt], owed: int) -> DeviceDeath:
    """The record of a death: the best of the attempts, of equal ones the first."""
    best, first = min(attempts, key=lambda attempt: attempt.rank), attempts[0]
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
        recovery_s=sum(attempt.spent_s for attempt in attempts[: attempts.index(best) + 1])
        if best.started
        else None,
        acknowledged=owed,
        lost=owed if best.lost is None else best.lost,
        damage=best.damage,
        check=best.check,
    )
