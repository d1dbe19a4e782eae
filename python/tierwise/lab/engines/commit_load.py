"""A load of small commits, each acknowledgement on record: what a power cut may not lose.

Each commit inserts a row that names its client and number, and rewrites one item of the client's own. So what
is found later tells which commits are there, and whether each is there whole.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, Self

from tierwise.host.users import ServerUser, give_ownership
from tierwise.model.output_files import open_output_file
from tierwise.model.placement import Role

MOST_COMMITS = 100_000
"""Of one client in one load; a client that has made them ends."""
ITEMS = 512
"""Items of each client, small enough to read them all after every cut."""
_BODY_BYTES = 400
_WORD_BYTES = 8
_BATCH = 256

SQL_SCHEMA = [
    (
        Role.DATA,
        "CREATE TABLE done (client integer NOT NULL, number integer NOT NULL, PRIMARY KEY (client, number))",
    ),
    (
        Role.DATA,
        "CREATE TABLE item (id integer NOT NULL PRIMARY KEY, number integer NOT NULL, body varchar(500))",
    ),
]
SQL_INDEX = (Role.INDEX, "CREATE INDEX item_number ON item (number)")
"""For engines that place indexes apart: the keys of the tables lie among the data."""
SQL_TABLES = ("done", "item")


@dataclass(frozen=True)
class FoundCommits:
    """What a database holds of the load's commits."""

    done: Sequence[tuple[int, int]]
    """Client and number of every commit that is there."""
    items: Sequence[tuple[int, int, bool]]
    """Id of each item, the number of its last commit (-1: of none), and whether its body is that commit's."""


class CommitSession(Protocol):
    """One session of the load."""

    def commit(self, client: int, number: int, item: int, body: str) -> None:
        """Insert ``(client, number)``, rewrite the item, and commit as durably as the settings say."""

    def fill(self, items: Sequence[tuple[int, int, str]]) -> None:
        """Add items that are not there yet: id, number and body."""

    def read(self) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int, str]]]:
        """All rows and all items."""

    def close(self) -> None:
        """End the session."""


class SqlCommitSession:
    """The load's statements in the SQL that every SQL engine takes."""

    def __init__(
        self, execute: Callable[[str], Sequence[Any]], close: Callable[[], None] = lambda: None
    ) -> None:
        """Take a session that commits each statement by itself outside a transaction."""
        self._execute = execute
        self.close = close

    def commit(self, client: int, number: int, item: int, body: str) -> None:
        """One transaction of two statements."""
        self._execute("BEGIN")
        self._execute(f"INSERT INTO done VALUES ({client}, {number})")
        self._execute(f"UPDATE item SET number = {number}, body = '{body}' WHERE id = {item}")
        self._execute("COMMIT")

    def fill(self, items: Sequence[tuple[int, int, str]]) -> None:
        """Insert a few hundred items a statement."""
        for first in range(0, len(items), _BATCH):
            rows = ", ".join(f"({i}, {n}, '{body}')" for i, n, body in items[first : first + _BATCH])
            self._execute(f"INSERT INTO item VALUES {rows}")

    def read(self) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int, str]]]:
        """Read both tables in full."""
        return (
            self._execute("SELECT client, number FROM done"),
            self._execute("SELECT id, number, body FROM item"),
        )


class CommitLedger:
    """When each commit of one load was acknowledged, in a file that its clients map into memory.

    For each client a word of 64 bits with the number of commits begun, then a word for each commit: the time
    of its acknowledgement on CLOCK_MONOTONIC in ns, or 0. A client that is killed leaves what it wrote.
    """

    def __init__(self, path: Path, file: IO[bytes] | None = None) -> None:
        """Map a ledger that :meth:`make` made; ``file`` is it, if it is open already."""
        self.path = path
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        with file or open(path, "r+b", opener=lambda name, how: os.open(name, how | flags)) as opened:
            mapped = mmap.mmap(opened.fileno(), 0)
        self._words = memoryview(mapped).cast("q")

    @classmethod
    def make(cls, path: Path, clients: int, user: ServerUser | None) -> Self:
        """Make an empty ledger that ``user`` may write to, in place of an earlier one."""
        path.unlink(missing_ok=True)
        file = open_output_file(path, "new", in_foreign=True)  # not opened again: the directory is the user's
        file.truncate(clients * (MOST_COMMITS + 1) * _WORD_BYTES)
        give_ownership(path, user)
        return cls(path, file)

    def begin(self, client: int, index: int) -> None:
        """Note that a commit is about to begin, counted from 0."""
        self._words[_place(client)] = index + 1

    def acknowledge(self, client: int, index: int) -> None:
        """Note that the engine has acknowledged a commit."""
        self._words[_place(client) + 1 + index] = time.monotonic_ns()

    def begun(self, client: int) -> int:
        """Number of commits that a client began."""
        return self._words[_place(client)]

    def acknowledged_ns(self, client: int) -> list[int]:
        """Times of a client's acknowledged commits, in their order."""
        first = _place(client) + 1
        return [at for at in self._words[first : first + self.begun(client)].tolist() if at > 0]


def _place(client: int) -> int:
    """Index of a client's first word."""
    return client * (MOST_COMMITS + 1)


def item_of_commit(client: int, number: int) -> int:
    """The item that a commit rewrites: scattered over the client's own."""
    return client * ITEMS + (number * 2_654_435_761 >> 7) % ITEMS


def commit_body(item: int, number: int) -> str:
    """What a commit writes into its item."""
    words = f"{item} {number} "
    return (words * (_BODY_BYTES // len(words) + 1))[:_BODY_BYTES]


def insert_commit_items(session: CommitSession, clients: int) -> None:
    """Add the items of all clients, which no commit has written yet."""
    session.fill([(item, -1, commit_body(item, -1)) for item in range(clients * ITEMS)])


def read_found_commits(session: CommitSession) -> FoundCommits:
    """Read everything and compare each item's body with that of the commit it names."""
    done, items = session.read()
    return FoundCommits(
        [(int(client), int(number)) for client, number in done],
        [(int(i), int(number), body == commit_body(i, number)) for i, number, body in items],
    )


def commit_until_failure(session: CommitSession, ledger: CommitLedger, client: int, first: int) -> None:
    """Commit the numbers from ``first`` on, one after the other; ends with the session's error."""
    for index in range(MOST_COMMITS):
        number = first + index
        item = item_of_commit(client, number)
        ledger.begin(client, index)
        session.commit(client, number, item, commit_body(item, number))
        ledger.acknowledge(client, index)
