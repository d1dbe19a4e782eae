"""Engines with a server of their own: its process, its home, the directories of its placed roles."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil

from tierwise.host import ledger, page_cache, processes, programs, users
from tierwise.host.cpu import tree_cpu_s
from tierwise.host.programs import Home
from tierwise.host.users import ServerUser
from tierwise.lab.engines import commits
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.documented import Salvage
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role


class ServerDirectories:
    """New directories under the places of the roles, owned by the server's user, entered in the ledger."""

    def __init__(self, prefix: str, user: users.ServerUser | None) -> None:
        """Make nothing yet.

        Args:
            prefix: begins the name of each directory.
            user: the server's account; ``None`` for the caller.
        """
        self._prefix = prefix
        self._user = user
        self._made: dict[Role, ledger.Directory] = {}
        self._beside: list[tuple[Role, ledger.Directory]] = []

    @property
    def paths(self) -> Mapping[Role, Path]:
        """The directory of each role that has one."""
        return {role: made.path for role, made in self._made.items()}

    @property
    def owned(self) -> Iterator[tuple[Role, Path]]:
        """Every directory, also those beside a role's own, with the role whose place it is in."""
        for role, made in (*self._made.items(), *self._beside):
            yield role, made.path

    def make(self, places: Mapping[Role, Path]) -> None:
        """Make one directory for each role.

        Raises:
            TierwiseError: naming the role and the directory, if the user may not enter a place.
        """
        for role, place in places.items():
            self._made[role] = self._make(role, place)

    def make_beside(self, role: Role, label: str) -> Path:
        """Make one more directory in the place of a role, or in the system's place if the role has none."""
        beside = role if role in self._made else Role.SYSTEM
        made = self._make(label, self._made[beside].path.parent)
        self._beside.append((beside, made))
        return made.path

    def remove(self) -> None:
        """Delete the directories with all their files."""
        for made in (*self._made.values(), *(made for _, made in self._beside)):
            made.remove()
        self._made.clear()
        self._beside.clear()

    def _make(self, label: str, place: Path) -> ledger.Directory:
        users.require_reachable(label, place, self._user)
        return ledger.directory(f"{self._prefix}-{label}", parent=place, owner=users.ids(self._user))


_CRASH_TIMEOUT_S = 10


class ServerProcess(ABC):
    """Starts and ends a server and its tools as its user; a subclass implements the connection."""

    _stop_signal = signal.SIGTERM
    _crash_signal = signal.SIGKILL

    def __init__(self, name: str, prefix: str, user: ServerUser | None) -> None:
        """Make the home.

        Args:
            name: of the engine, for messages.
            prefix: begins the home's name.
            user: the server's account; ``None`` for the caller.
        """
        self._name = name
        self._user = user
        self._home = Home(f"{prefix}-home", user)
        self._log_from_bytes = 0
        self._process: processes.Process | None = None

    @abstractmethod
    def start(
        self, data: Path, settings: Mapping[str, str], timeout_s: float, began: Callable[[], None]
    ) -> None:
        """Start the server on a data directory and wait until it answers.

        Args:
            began: called as soon as the process exists, before it has done much.

        Raises:
            TierwiseError: naming the setting, or with the last severe line of its log.
        """

    @abstractmethod
    def query(self, sql: str) -> list[Any]:
        """Run one statement over the control connection and give its rows."""

    @abstractmethod
    def explain(self, what: str) -> TierwiseError:
        """Build the error for a failed action from the severe log line since the last start."""

    @abstractmethod
    def failure(self) -> str | None:
        """The last severe line of the log since the last start, if any."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the control connection if there is one."""

    @property
    def home(self) -> Path:
        """The server's home directory, for files without a role."""
        return self._home.own

    @property
    def pid(self) -> int | None:
        """Pid of the server's first process, while it runs."""
        return self._process.pid if self._process is not None and self._process.running else None

    @property
    def killed(self) -> bool:
        """Whether SIGKILL from outside tierwise ended it, as the kernel's OOM killer does."""
        return self._process is not None and self._process.popen.poll() == -signal.SIGKILL

    def pids(self) -> list[int]:
        """Pids of the server and its children; none while it is down."""
        if self.pid is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self.pid, *(child.pid for child in psutil.Process(self.pid).children(recursive=True))]
        return []

    def cpu_s(self) -> float | None:
        """CPU seconds of all its processes since its start, including ended ones."""
        return None if self._process is None else tree_cpu_s(self._process.pid)

    def launch(
        self, program: Path, arguments: Sequence[str | Path], secrets: Mapping[str, str] | None = None
    ) -> processes.Process:
        """Start a program as the server's user, with its messages in the server's log.

        Args:
            secrets: additional environment, which only its user and root can read.
        """
        self._log_from_bytes = self._home.log_bytes
        return programs.start(
            self._name, [program, *arguments], home=self._home, variables=secrets, log=self._home.log
        )

    def run(
        self,
        program: Path,
        arguments: Sequence[str | Path],
        timeout_s: float,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """Run a program as the server's user to its end; the arguments are those of :meth:`launch`.

        Raises:
            TierwiseError: with the last line that it wrote, if it failed.
        """
        process = self.launch(program, arguments, secrets)
        try:
            failed = process.wait(timeout_s) != 0
        except BaseException as error:
            process.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            failed = True
        if failed:
            raise self.error(f"{program.name} failed")

    def error(self, what: str) -> TierwiseError:
        """The error to raise after a failed action."""
        if self.killed:
            return TierwiseError(
                f"engine {self._name} {what}: it was killed, as the kernel does when memory runs out",
                "give it more memory",
            )
        return self.explain(what)

    def stop(self, timeout_s: float) -> None:
        """Stop cleanly: end sessions, write all data."""
        process = self._leave()
        if process is None:
            return
        process.signal(self._stop_signal)
        if not process.wait_or_kill(timeout_s):
            raise TierwiseError(
                f"engine {self._name} did not stop within {timeout_s:g} s and was killed",
                "see what its device does, or allow more time",
            )

    def crash_stop(self) -> None:
        """End it without further writes; SIGKILL if that takes long."""
        process = self._leave()
        if process is None:
            return
        process.signal(self._crash_signal)
        process.wait_or_kill(_CRASH_TIMEOUT_S)

    def remove(self) -> None:
        """End the process if it runs and delete the home."""
        self.crash_stop()
        self._home.remove()

    def _leave(self) -> processes.Process | None:
        """Disconnect and give the process to the caller, which ends it."""
        self._disconnect()
        process, self._process = self._process, None
        return process

    def _recent_log(self) -> str:
        return self._home.read_log(self._log_from_bytes)

    def _down(self) -> TierwiseError:
        return TierwiseError(f"engine {self._name} does not run", "start it first")


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
