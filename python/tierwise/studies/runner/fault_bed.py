"""A database under a load of commits, on emulated devices to which something happens at a random moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random

from tierwise.engines.base import Engine
from tierwise.engines.commits import MOST_COMMITS, CommitLedger
from tierwise.host.disk.disk import EmulatedDisk
from tierwise.model.errors import TierwiseError
from tierwise.results import IntegrityCheck
from tierwise.studies.runner.commit_books import Books, Load, Loss

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
    books: Books = field(init=False)
    _first: int = 0

    def __post_init__(self) -> None:
        """Open empty books."""
        self.books = Books(self.clients)

    def prepare(self) -> None:
        """Make the tables; the devices answer at once meanwhile, and at their models' pace afterwards."""
        self.engine.make_commit_tables(self.clients)
        self.engine.checkpoint()
        self.set_timing(True)

    def set_timing(self, on: bool) -> None:
        """Make every device answer at its model's pace, or at once."""
        for disk in self.disks:
            disk.set_timing(on)

    def load_until(self, fault: Callable[[], int], dice: Random, longest_s: float) -> Load:
        """Let clients commit, cause a fault at a random moment, and stop the engine as it then stands.

        Args:
            fault: causes it; gives the time in ns from which on nobody hears of an acknowledgement.
            dice: decide the moment.
            longest_s: of the load before the fault.

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
        return Load(
            first, [ledger.begun(n) for n in numbers], [ledger.acknowledged_ns(n) for n in numbers], end_ns
        )

    def compare(self, books: Books, load: Load) -> tuple[Loss, IntegrityCheck, str | None]:
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
