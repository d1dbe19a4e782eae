"""A database under a load of commits, on emulated devices whose power is cut again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from tierwise.engines.base import Engine
from tierwise.engines.commits import MOST_COMMITS, CommitLedger
from tierwise.host.disk.disk import CutReport, EmulatedDisk
from tierwise.model.errors import TierwiseError
from tierwise.results.power_cuts import PowerCut
from tierwise.studies.runner.commit_books import Books, Load

_EARLIEST = 0.2
"""A cut comes after this share of the longest load at the earliest."""
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
class CutBed:
    """A running engine with its tables of commits on ``disks``; every device's power is cut at once."""

    engine: Engine
    disks: Collection[EmulatedDisk]
    clients: int
    settle_s: float = 0
    """Wait before each load: a device that lies about flushes has then written back all that came before."""
    books: Books = field(init=False)
    _first: int = 0

    def __post_init__(self) -> None:
        """Open empty books."""
        self.books = Books(self.clients)

    def prepare(self) -> None:
        """Make the tables; the devices answer at once meanwhile, and at their models' pace afterwards."""
        self.engine.make_commit_tables(self.clients)
        self.engine.checkpoint()
        self._set_timing(True)

    def cut(self, seed: int, longest_s: float, *, keep_random: bool = True) -> PowerCut:
        """Load, cut the power at a random moment, recover with devices that answer at once, and compare.

        Args:
            seed: of the moment, and of the unflushed sectors that survive.
            longest_s: of the load.
            keep_random: keep a random subset of unflushed sectors; without it, all of them are lost.

        Returns:
            The cut; after one with ``damage`` the database is of no further use.

        Raises:
            TierwiseError: if the load fails while the power is on.
        """
        dice = Random(seed)
        time.sleep(self.settle_s)
        ledger = self.engine.commit_ledger(self.clients)
        first, self._first = self._first, self._first + MOST_COMMITS
        clients = [_Client(self.engine, ledger, number, first) for number in range(self.clients)]
        try:
            _await_first_commit(clients, ledger)
            time.sleep(dice.uniform(_EARLIEST, 1) * longest_s)
            _require_alive(clients)
            cut_ns = time.monotonic_ns()
            reports = self._cut_power(dice, keep_random)
        finally:
            self.engine.crash_stop()
            for client in clients:
                client.join()
        numbers = range(self.clients)
        load = Load(
            first, [ledger.begun(n) for n in numbers], [ledger.acknowledged_ns(n) for n in numbers], cut_ns
        )
        return self._recover(seed, load, reports)

    def _cut_power(self, dice: Random, keep_random: bool) -> list[CutReport]:
        """Cut the devices one right after the other, in random order."""
        disks = dice.sample(list(self.disks), len(self.disks))
        return [disk.cut(keep_random=keep_random, seed=dice.getrandbits(32), remount=False) for disk in disks]

    def _recover(self, seed: int, load: Load, reports: list[CutReport]) -> PowerCut:
        cut = PowerCut(
            seed=seed,
            load_s=load.seconds,
            commits=load.counted,
            unflushed_sectors=sum(report.unflushed_sectors for report in reports),
            kept_sectors=sum(report.kept_sectors for report in reports),
            torn_writes=sum(report.torn_writes for report in reports),
        )
        self._set_timing(False)
        found: dict[str, object] = {}
        try:
            started_s = time.monotonic()
            for disk in self.disks:
                disk.remount()
            self.engine.start()
            found["recovery_s"] = time.monotonic() - started_s
            loss, damage = self.books.settle(load, self.engine.found_commits())
            check = self.engine.check()
            found |= {"lost": loss.commits, "oldest_lost_ms": loss.oldest_ms, "whole_load": loss.whole_load}
            found |= {"check": check, "damage": damage or next(iter(check.problems), None)}
        except (TierwiseError, OSError) as error:
            found["damage"] = error.message if isinstance(error, TierwiseError) else str(error)
        self._set_timing(True)
        return cut.model_copy(update=found)

    def _set_timing(self, on: bool) -> None:
        for disk in self.disks:
            disk.set_timing(on)


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
            raise TierwiseError(
                f"a client failed before the power cut: {client.error.message}", client.error.fix
            )
