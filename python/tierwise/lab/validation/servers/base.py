"""Interface of a case's database: places, and the target of a recording."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import Target
from tierwise.host import mounts, processes, programs
from tierwise.host.interpreter import Command
from tierwise.host.programs import Home
from tierwise.host.users import ServerUser, ids, require_reachable, server_user, unreachable_part
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import new_folder
from tierwise.model.placement import Role

DATABASE = "bench"
"""Name of the clients' database in a server."""
CLIENT = "bench"
"""Account of the clients in a server, with rights in that database alone; only tierwise is the superuser."""
_POSTGRES_ROOT = Path("/usr/lib/postgresql")
BUFFER_SETTINGS = {"postgres": "shared_buffers", "mariadb": "innodb-buffer-pool-size"}
"""Server -> the setting with the size of its own buffer."""
START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 120.0

_ROLES: Mapping[str, frozenset[Role]] = {
    "postgres": frozenset({Role.LOG, Role.DATA, Role.TEMP}),
    "mariadb": frozenset({Role.LOG, Role.DATA, Role.TEMP}),
    "rocksdb": frozenset({Role.LOG, Role.DATA}),
    "duckdb": frozenset({Role.DATA, Role.TEMP}),
    "sqlite": frozenset({Role.DATA}),
}
"""Roles that can be placed separately; all others are with the data."""


def roles_of(server: str | None, engine: str) -> frozenset[Role]:
    """Roles that a server, or a library if ``server`` is ``None``, can place separately."""
    return _ROLES[server or engine]


def missing(server: str | None) -> str | None:
    """The missing package of a server, by Debian's name; ``None`` if nothing is missing."""
    if server == "postgres" and not list(_POSTGRES_ROOT.glob("*/bin/postgres")):
        return "PostgreSQL is not installed (Debian: postgresql-15)"
    if server == "mariadb" and programs.find("mariadbd") is None:
        return "MariaDB is not installed (Debian: mariadb-server-core, mariadb-client-core)"
    return None


class Database(ABC):
    """The database of a case's client. Files of a role are in the role's place, all others with the data."""

    engine: str

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Create nothing yet.

        Args:
            settings: settings of the engine.
        """
        self.settings = settings
        self.user: ServerUser | None = server_user()
        """User of the database and its clients; ``None`` for the caller, if not root."""
        self._home = Home("validate-home", self.user)
        self.places: dict[Role, Path] = {}
        self.selected: Sequence[str] = ()
        """Tables and indexes in a place of their own, such as ``table:public.orders``."""

    @property
    def home(self) -> Path:
        """The user's directory outside the storage under test: sockets, and what the clients write."""
        return self._home.own

    @property
    def outer(self) -> Path:
        """The caller's directory around :attr:`home`: logs, programs, and input, which the user may read."""
        return self._home.outer

    def start_program(
        self,
        name: str,
        program: Sequence[str | Path] | Command,
        log: Path,
        variables: Mapping[str, str] | None = None,
    ) -> processes.Process:
        """Start a program as the database's user, with its output in a new file."""
        log.unlink(missing_ok=True)
        return programs.start(f"validate-{name}", program, home=self._home, variables=variables, log=log)

    def input_file(self, name: str, text: str) -> Path:
        """Write a file that the user may read and only the caller may change."""
        path = self.outer / name
        path.write_text(text, "utf-8")
        path.chmod(0o644)
        return path

    def reachable(self, program: Path) -> Path:
        """A program or a directory of programs, or a copy if the user may not enter its directory."""
        if unreachable_part(program, self.user) is None:
            return program
        copied = self.outer / program.name
        if not copied.exists():
            programs.copy(program, copied)
        return copied

    def own_directory(self, parent: Path, name: str) -> Path:
        """Make a directory that only the user may enter.

        Raises:
            TierwiseError: if that user may not enter ``parent``.
        """
        require_reachable(self.engine, parent, self.user)
        made = parent / name
        new_folder(made, owner=ids(self.user), in_foreign=True)  # the parent may be the user's home
        return made

    @abstractmethod
    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Create a database in ``folder``, fill it with ``prepare``, and shut it down."""

    @abstractmethod
    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy a stopped database to the storage under test."""

    @abstractmethod
    def start(self) -> None:
        """Start the server; a library needs no start."""

    @abstractmethod
    def stop(self) -> None:
        """Shut it down. No error if it is stopped."""

    @abstractmethod
    def target(self) -> Target | None:
        """Target of a recording; ``None`` for a library, which runs in its client's process."""

    def dsn(self) -> Dsn | None:
        """The address at which a recording asks for the names of tables; ``None`` if it needs none."""
        return None

    def version(self) -> str:
        """Version of the programs."""
        return ""

    def remove(self) -> None:
        """Stop, and delete the home's content."""
        self.stop()
        self._home.remove()


class Server(Database):
    """A server process, in directories that no other user may read."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Nothing runs yet."""
        super().__init__(settings)
        self._process: processes.Process | None = None
        self.data = Path()
        self.port = free_port()

    @property
    def pid(self) -> int:
        """Pid of the server's first process.

        Raises:
            TierwiseError: if it does not run.
        """
        if self._process is None or not self._process.running:
            raise self.error("does not run")
        return self._process.pid

    def launch(self, argv: Sequence[str | Path]) -> None:
        """Start the server as its user, with its message log in the home."""
        self._process = self._spawn(argv)

    def run(self, argv: Sequence[str | Path], timeout_s: float = 300.0) -> None:
        """Run one of the server's tools as its user, to its end.

        Raises:
            TierwiseError: with the last line it wrote, if it fails.
        """
        process = self._spawn(argv)
        try:
            failed = process.wait(timeout_s) != 0
        except subprocess.TimeoutExpired:
            process.kill()
            failed = True
        if failed:
            raise self.error(f"{Path(argv[0]).name} failed")

    def error(self, what: str) -> TierwiseError:
        """The error to raise, with the last line of the server's messages."""
        lines = self._home.read_log().strip().splitlines()
        return TierwiseError(f"{self.engine} {what}: {lines[-1] if lines else 'no message'}", "mend that")

    def stop(self) -> None:
        """Shut it down cleanly, or kill it if that takes too long."""
        process, self._process = self._process, None
        if process is not None:
            process.signal(self._stop_signal())
            process.wait_or_kill(_STOP_TIMEOUT_S)

    @abstractmethod
    def _stop_signal(self) -> signal.Signals: ...

    def _spawn(self, argv: Sequence[str | Path]) -> processes.Process:
        return programs.start(f"validate-{self.engine}", argv, home=self._home, log=self._home.log)


def caller() -> str:
    """Name of the account that tierwise runs as, the only one that may be a server's superuser."""
    return pwd.getpwuid(os.geteuid()).pw_name


def free_port() -> int:
    """A free TCP port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def copy_files(source: Path, destination: Path) -> None:
    """Copy a directory with owners, modes and times.

    Raises:
        TierwiseError: if that fails, for example for lack of space.
    """
    try:
        mounts.run("cp", "-a", "--", str(source), str(destination))
    except TierwiseError as error:
        raise TierwiseError(f"copying {source}: {error.message[-200:]}", "make room for it") from error
