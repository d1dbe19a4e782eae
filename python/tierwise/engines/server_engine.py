"""Common base of engines with their own server: directories, and a process on them."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from tierwise.engines import commits
from tierwise.engines.base import Engine
from tierwise.engines.documented import Salvage
from tierwise.engines.server_process import ServerDirectories, ServerProcess
from tierwise.host import page_cache, users
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

ServerT = TypeVar("ServerT", bound=ServerProcess)


class ServerEngine(Engine, Generic[ServerT]):
    """A database server that is reached only over a Unix socket.

    Called by root, it runs as tierwise's own account; called by a user, as that user.
    """

    def __init__(self, name: str, kind: str, timeout_s: float) -> None:
        """Prepare; nothing is made or started yet.

        Args:
            name: the engine's name, for messages and results.
            kind: begins the names of its directories.
            timeout_s: longest wait for a start with its recovery, and for a stop with its checkpoint.
        """
        self.name = name
        self._timeout_s = timeout_s
        self._user = users.server_user()
        self._made = ServerDirectories(kind, self._user)
        self._server: ServerT | None = None

    @abstractmethod
    def _make_server(self) -> ServerT:
        """Make a server with its home; do not start it."""

    @abstractmethod
    def _make_database(self, server: ServerT) -> None:
        """Make an empty database in the directories, and leave the server down."""

    @abstractmethod
    def _all_settings(self) -> dict[str, str]:
        """All settings for the server's start."""

    def init(self, places: Mapping[Role, Path]) -> None:
        """Make the directories, then the database in them."""
        self.require_placeable(places)
        try:
            self._made.make(places)
            self._server = self._make_server()
            self._make_database(self._server)
        except BaseException:
            self.close()
            raise
        page_cache.write_out(self.directories.values())

    def start(self) -> None:
        """Start the server and wait until it answers."""
        if not self.running:
            self._start_with({})

    def start_salvaged(self, step: Salvage) -> None:
        """Start with the settings of a step, then run its statements as the load's account."""
        self._start_with(step.settings)
        self.execute_schema((Role.SYSTEM, statement) for statement in step.statements)

    def _start_with(self, changes: Mapping[str, str]) -> None:
        server, settings = self._known_server(), {**self._all_settings(), **changes}
        server.crash_stop()  # a server that ended unexpectedly may have left children
        server.start(self.directories[Role.SYSTEM], settings, self._timeout_s, began=self._confine)

    def stop(self) -> None:
        """Stop cleanly: end sessions and write a checkpoint."""
        if self._server is not None:
            self._server.stop(self._timeout_s)

    def crash_stop(self) -> None:
        """Stop without a checkpoint."""
        if self._server is not None:
            self._server.crash_stop()

    def close(self) -> None:
        """Kill the server if it runs and delete its directories."""
        if self._server is not None:
            self._server.remove()
            self._server = None
        self._made.remove()

    @abstractmethod
    def commit_session(self) -> commits.CommitSession:
        """Open a session of the load's account for commits, without a time limit."""

    def make_commit_tables(self, clients: int) -> None:
        """Make the tables of the load of commits."""
        self.execute_schema(commits.SQL_SCHEMA)
        with contextlib.closing(self.commit_session()) as session:
            commits.fill(session, clients)

    def commit_ledger(self, clients: int) -> commits.CommitLedger:
        """An empty ledger in the server's home."""
        return commits.CommitLedger.make(self._known_server().home / "commits", clients, self._user)

    def commit_until_it_fails(self, ledger: commits.CommitLedger, client: int, first: int) -> None:
        """Commit on the caller's thread."""
        with contextlib.closing(self.commit_session()) as session:
            commits.commit_until_it_fails(session, ledger, client, first)

    def found_commits(self) -> commits.Found:
        """Read both tables."""
        with contextlib.closing(self.commit_session()) as session:
            return commits.read(session)

    def processes(self) -> list[int]:
        """The server's first process and its children."""
        return [] if self._server is None else self._server.pids()

    def failure(self) -> str | None:
        """A line that the server was killed, or the last severe line of its log."""
        if self._server is not None and self._server.killed:
            return "the server was killed, as the kernel does when memory runs out"
        return None if self._server is None else self._server.failure()

    @property
    def server_pid(self) -> int | None:
        """Pid of the server's first process while it runs."""
        return None if self._server is None else self._server.pid

    @property
    def directories(self) -> Mapping[Role, Path]:
        """One directory for each placed role."""
        return self._made.paths

    @property
    def owned_directories(self) -> Iterable[tuple[Role, Path]]:
        """These and, of some servers, one more beside a role's own."""
        return self._made.owned

    def _known_server(self) -> ServerT:
        if self._server is None:
            raise TierwiseError(f"engine {self.name} has no database", "init it first")
        return self._server
