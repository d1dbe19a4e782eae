"""Database servers, which are reached over a Unix socket: their process, their sessions, their engines."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import psutil

from tierwise import _core
from tierwise.host import page_cache, processes, programs
from tierwise.host.cpu import process_tree_cpu_s
from tierwise.host.users import ServerUser
from tierwise.lab.engines import commit_load
from tierwise.lab.engines.base import ConnectedClients, ProcessEngine
from tierwise.lab.engines.process_engine import EngineProcess
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

_FIXES: Sequence[tuple[str, str]] = (
    (
        r"No space left on device|[dD]isk full|is full|errno: 28\b|Error number 28",
        "give the device of that role more space, or load less",
    ),
    (r"Address already in use|could not create any", "stop the other server, or choose another port"),
    (r'lock file "[^"]*" already exists', "stop the server that uses it, or choose another port"),
    (
        r"Permission denied|not permitted|errno: 13\b",
        "let the user of the server enter the directory: chmod o+x",
    ),
    (r"shared memory|Cannot allocate memory|out of memory", "ask for less memory, as {}"),
)
"""Fixes by a pattern of the message; the first match counts."""


def fix_for_server_error(message: str, memory_setting: str) -> str:
    """The user's fix for a message of a server, whose setting ``memory_setting`` takes most memory."""
    fixes = (fix.format(memory_setting) for pattern, fix in _FIXES if re.search(pattern, message))
    return next(fixes, "mend what the message names")


class SqlSession:
    """A connection on which each statement commits by itself."""

    def __init__(self, server: ServerProcess, connection: Any) -> None:
        """Take over a connection of the server's driver, in autocommit."""
        self._server, self.connection = server, connection

    def query(self, sql: str) -> list[Any]:
        """Run one statement and give its rows."""
        return self._rows(sql)[1]

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """Run one query and give its rows by column."""
        columns, rows = self._rows(sql)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def close(self) -> None:
        """End the session. No error if the server has ended it."""
        with contextlib.suppress(*self._server.driver_errors()):
            self.connection.close()

    def _rows(self, sql: str) -> tuple[list[str], list[Any]]:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(sql)
                if cursor.description is None:
                    return [], []
                return [column[0] for column in cursor.description], list(cursor.fetchall())
        except self._server.driver_errors() as error:
            raise self._server.refused(error, lost=self._server.is_lost(self.connection)) from error


class ServerProcess(EngineProcess):
    """Starts and ends a server and its tools as its user; a subclass implements the connection."""

    memory_setting: ClassVar[str]
    """The setting that takes most of the server's memory."""
    _stop_signal = signal.SIGTERM

    def __init__(self, name: str, prefix: str, user: ServerUser | None) -> None:
        super().__init__(name, prefix, user)
        self._log_from_bytes = 0
        self._control: SqlSession | None = None
        self._client: SqlSession | None = None
        self._has_client = False

    @property
    @abstractmethod
    def address(self) -> str:
        """Address of the load's sessions as keywords and values, as the clients read it."""

    @abstractmethod
    def command(self, data: Path, settings: Mapping[str, str]) -> list[str | Path]:
        """The server's command on a data directory."""

    @abstractmethod
    def make_client(self) -> None:
        """Make the account and the database of the load, once, in a new database that runs."""

    @abstractmethod
    def connect(self) -> Any:
        """Open a connection of the superuser, where the load's statements do not reach."""

    @abstractmethod
    def connect_client(self) -> Any:
        """Open a connection of the load's account in the load's database."""

    @abstractmethod
    def driver_errors(self) -> tuple[type[Exception], ...]:
        """Errors that the driver raises."""

    @abstractmethod
    def is_lost(self, connection: Any) -> bool:
        """Whether a connection has ended."""

    @staticmethod
    @abstractmethod
    def grave_lines(log: str) -> list[str]:
        """Messages of a log that report a loss, oldest first."""

    @abstractmethod
    def explain(self, what: str) -> TierwiseError:
        """Build the error for a failed action from the severe log line since the last start."""

    def failure(self) -> str | None:
        """The last severe line of the log since the last start, if any."""
        return next(reversed(self.grave_lines(self._recent_log())), None)

    @property
    def killed(self) -> bool:
        """Whether SIGKILL from outside tierwise ended it, as the kernel's OOM killer does."""
        return self._process is not None and self._process.popen.poll() == -signal.SIGKILL

    @property
    def control(self) -> SqlSession:
        """tierwise's own session of the superuser."""
        return self._up(self._control)

    @property
    def client(self) -> SqlSession:
        """tierwise's own session of the load's account, for all that concerns the load's database."""
        return self._up(self._client)

    def query(self, sql: str) -> list[Any]:
        """Run one statement of tierwise's own as the superuser and give its rows."""
        return self.control.query(sql)

    def session(self, connect: Callable[[], Any]) -> SqlSession:
        """Open a session."""
        try:
            return SqlSession(self, connect())
        except self.driver_errors() as error:
            raise self.refused(error, lost=True) from error

    def refused(self, error: Exception, *, lost: bool) -> TierwiseError:
        """The error to raise for one of the driver; ``lost``: the log may tell why there is no connection."""
        first = next(iter(str(error.args[-1] if error.args else error).splitlines()), type(error).__name__)
        message = (lost and self.failure()) or first
        return TierwiseError(
            f"engine {self._name}: {message}", fix_for_server_error(message, self.memory_setting)
        )

    def serve(
        self,
        data: Path,
        settings: Mapping[str, str],
        timeout_s: float,
        began: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the server on a data directory, its settings on the command line; wait until it answers.

        Args:
            began: called as soon as the process exists, before it has done much.

        Raises:
            TierwiseError: naming the setting, or with the last severe line of its log.
        """
        program, *arguments = self.command(data, settings)
        self._process = self.launch(program, arguments)
        try:
            began()
            self._control = self._await_control(timeout_s)
            if self._has_client:
                self._client = self.session(self.connect_client)
        except BaseException:
            self.crash_stop()
            raise

    def pids(self) -> list[int]:
        """Pids of the server and its children; none while it is down."""
        if self.pid is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self.pid, *(child.pid for child in psutil.Process(self.pid).children(recursive=True))]
        return []

    def cpu_s(self) -> float | None:
        """CPU seconds of all its processes since its start, including ended ones."""
        return None if self._process is None else process_tree_cpu_s(self._process.pid)

    def launch(
        self,
        program: str | Path,
        arguments: Sequence[str | Path],
        secrets: Mapping[str, str] | None = None,
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
        """Run a program as the server's user to its end; the arguments are those of :meth:`launch`."""
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

    def end(self, timeout_s: float) -> None:
        """Stop cleanly: end sessions, write all data. No error if it is down."""
        process = self._leave()
        if process is None:
            return
        process.signal(self._stop_signal)
        if not process.wait_or_kill(timeout_s):
            raise TierwiseError(
                f"engine {self._name} did not stop within {timeout_s:g} s and was killed",
                "see what its device does, or allow more time",
            )

    def _await_control(self, timeout_s: float) -> SqlSession:
        """Its socket is in a home of its own, so that no other server can answer there."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self.pid is None:
                raise self.error("cannot start")
            with contextlib.suppress(TierwiseError):
                return self.session(self.connect)
            time.sleep(0.01)
        raise self.error(f"took no connection within {timeout_s:g} s")

    def _disconnect(self) -> None:
        for session in (self._client, self._control):
            if session is not None:
                session.close()
        self._client = self._control = None

    def _up(self, session: SqlSession | None) -> SqlSession:
        if session is None:
            raise TierwiseError(f"engine {self._name} does not run", "start it first")
        return session

    def _recent_log(self) -> str:
        return self._home.read_log(self._log_from_bytes)


ServerT = TypeVar("ServerT", bound=ServerProcess)


class ServerInstallation(Protocol):
    """A server's programs."""

    @property
    def version(self) -> str:
        """Version of the server, such as ``10.11.14``."""

    def check(self, engine: str, settings: Mapping[str, str]) -> None:
        """Check settings with the server's own parser, without starting it."""


class ServerEngine(ProcessEngine[ServerT]):
    """A database server that is reached only over a Unix socket."""

    driver: ClassVar[str]
    """Name of the driver of its clients, which also begins the names of its directories."""
    checkpoint_statement: ClassVar[str]

    def __init__(
        self, name: str, installation: ServerInstallation, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, self.driver, settings)
        self._installation = installation
        self._version = installation.version

    def check_settings(self) -> None:
        """Ask the server's own parser."""
        self._installation.check(self.name, self._given)

    def version(self) -> str:
        """Version of the server's program."""
        return self._version

    def checkpoint(self) -> None:
        """Run the server's checkpoint, then write the kernel's dirty pages."""
        self._known_process().query(self.checkpoint_statement)
        page_cache.write_out_dirty_pages(self.directories.values())

    def clients(self, program_json: str, clients: int, seed: int) -> ConnectedClients:
        """Clients over the Unix socket, on threads of this process."""
        return _core.Clients(self.driver, self._known_process().address, program_json, clients, seed)

    def load_tables(self, program_json: str, seed: int) -> int:
        """Fill the tables over several connections."""
        address = self._known_process().address
        return _core.load_tables(self.driver, address, program_json, seed, progress=self.on_loaded)

    @abstractmethod
    def _all_settings(self) -> dict[str, str]:
        """All settings for the server's start."""

    def _start_with(self, changes: Mapping[str, str]) -> None:
        server, settings = self._known_process(), {**self._all_settings(), **changes}
        server.crash_stop()  # a server that ended unexpectedly may have left children
        server.serve(self.directories[Role.SYSTEM], settings, self._timeout_s, began=self._confine)

    def stop(self) -> None:
        """Stop cleanly: end sessions and write a checkpoint."""
        if self._process is not None:
            self._process.end(self._timeout_s)

    def make_commit_tables(self, clients: int) -> None:
        """Make the tables of the load of commits."""
        self.execute_schema(commit_load.SQL_SCHEMA)
        with contextlib.closing(self.commit_session()) as session:
            commit_load.insert_commit_items(session, clients)

    def commit_until_it_fails(self, ledger: commit_load.CommitLedger, client: int, first: int) -> None:
        """Commit on the caller's thread."""
        with contextlib.closing(self.commit_session()) as session:
            commit_load.commit_until_failure(session, ledger, client, first)

    def found_commits(self) -> commit_load.FoundCommits:
        """Read both tables."""
        with contextlib.closing(self.commit_session()) as session:
            return commit_load.read_found_commits(session)

    def commit_session(self) -> commit_load.CommitSession:
        """A session of the load's account for commits, without a time limit."""
        server = self._known_process()
        session = server.session(server.connect_client)
        return commit_load.SqlCommitSession(session.query, session.close)

    def processes(self) -> list[int]:
        """The server's first process and its children."""
        return [] if self._process is None else self._process.pids()

    def failure(self) -> str | None:
        """A line that the server was killed, or the last severe line of its log."""
        if self._process is not None and self._process.killed:
            return "the server was killed, as the kernel does when memory runs out"
        return None if self._process is None else self._process.failure()
