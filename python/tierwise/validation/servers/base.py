"""What a case's database offers its client: places, counters, and what a recording attaches to."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tierwise.capture import Target
from tierwise.host import processes
from tierwise.host.home import Home
from tierwise.host.users import ServerUser, give, require_reachable, server_user
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role

DATABASE = "bench"
"""Name of the clients' database in a server."""
_POSTGRES_ROOT = Path("/usr/lib/postgresql")
START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 120.0

_ROLES: Mapping[str, frozenset[Role]] = {
    "postgres": frozenset({Role.LOG, Role.DATA, Role.TEMP}),
    "mariadb": frozenset({Role.LOG, Role.DATA, Role.TEMP}),
    "rocksdb": frozenset({Role.LOG, Role.DATA}),
    "duckdb": frozenset({Role.DATA, Role.TEMP}),
    "sqlite": frozenset({Role.DATA}),
}
"""Roles that can be placed apart; all others are with the data."""


def roles_of(server: str | None, engine: str) -> frozenset[Role]:
    """Roles that a server, or a library where ``server`` is ``None``, can have in places of their own."""
    return _ROLES[server or engine]


def missing(server: str | None) -> str | None:
    """What is to be installed for a server, with Debian's name of the package; ``None`` if nothing is."""
    if server == "postgres" and not list(_POSTGRES_ROOT.glob("*/bin/postgres")):
        return "PostgreSQL is not installed (Debian: postgresql-15)"
    if server == "mariadb" and find_program("mariadbd") is None:
        return "MariaDB is not installed (Debian: mariadb-server-core, mariadb-client-core)"
    return None


def find_program(name: str) -> Path | None:
    """A program on the path or where Debian has servers; ``None`` if it is not installed."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/local/go/bin")
    return Path(found) if found else None


class Database(ABC):
    """What one case's client works on. Files of a role lie in the role's place, all others with the data."""

    engine: str

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Nothing is made yet.

        Args:
            settings: of the engine.
        """
        self.settings = settings
        self.user: ServerUser | None = server_user()
        """Who the database and its clients run as; ``None`` for the caller, if he is not root."""
        self._home = Home("validate-home", self.user)
        self.places: dict[Role, Path] = {}

    @property
    def home(self) -> Path:
        """A directory of the user's, off the storage under test: sockets, logs, the clients' input."""
        return self._home.own

    def own_directory(self, parent: Path, name: str) -> Path:
        """Make a directory that only the user may enter.

        Raises:
            TierwiseError: if that user may not enter ``parent``.
        """
        require_reachable(self.engine, parent, self.user)
        made = parent / name
        made.mkdir(mode=0o700)
        give(made, self.user)
        return made

    @abstractmethod
    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Make a database in ``folder``, let ``prepare`` fill it, and leave it at rest."""

    @abstractmethod
    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy a database at rest to the storage under test."""

    @abstractmethod
    def start(self) -> None:
        """Make it answer; nothing to do for a library."""

    @abstractmethod
    def stop(self) -> None:
        """Leave it at rest. No error if it is."""

    @abstractmethod
    def target(self) -> Target | None:
        """What a recording attaches to; ``None`` for a library, which is in its client's process."""

    def counters(self) -> dict[str, float]:
        """Totals that the engine keeps: ``commits`` and ``log_syncs``, where it does."""
        return {}

    def log_waiters(self) -> tuple[int, int] | None:
        """Sessions that wait for the log just now, and all sessions; ``None`` where it cannot be told."""
        return None

    def stop_watching(self) -> None:  # noqa: B027  (a hook that few need)
        """Close what :meth:`log_waiters` needs: a session that is recorded shall be a client's."""

    def version(self) -> str:
        """Of the programs."""
        return ""

    def remove(self) -> None:
        """Stop, and delete what is in the home."""
        self.stop()
        self._home.remove()


class Server(Database):
    """A server process, in directories that nobody else may read."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Nothing runs yet."""
        super().__init__(settings)
        self._process: processes.Process | None = None
        self.data = Path()
        self.listens = False
        """Whether it takes connections over loopback TCP, for clients that know no sockets."""
        self.port = free_port()

    @property
    def pid(self) -> int:
        """Of the server's first process.

        Raises:
            TierwiseError: if it does not run.
        """
        if self._process is None or not self._process.running:
            raise self.error("does not run")
        return self._process.pid

    def launch(self, argv: Sequence[str | Path]) -> None:
        """Start the server as its user, with its messages in the home."""
        self._process = self._spawn(argv)

    def run(self, argv: Sequence[str | Path], timeout_s: float = 300.0) -> None:
        """Run a tool of the server's as its user, to its end.

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
        """End it in order, or at once if that takes too long."""
        process, self._process = self._process, None
        self.stop_watching()
        if process is not None:
            process.signal(self._stop_signal())
            process.wait_or_kill(_STOP_TIMEOUT_S)

    @abstractmethod
    def open_to_loopback(self, password: str) -> str:
        """Let clients in over loopback TCP at :attr:`port` with a password; gives the name of the account."""

    @abstractmethod
    def _stop_signal(self) -> signal.Signals: ...

    def _spawn(self, argv: Sequence[str | Path]) -> processes.Process:
        return processes.start(
            f"validate-{self.engine}",
            argv,
            user=self.user,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            cwd=self.home,
            log=self._home.log,
        )


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def copy_files(source: Path, destination: Path) -> None:
    """Copy a directory with owners, modes and times.

    Raises:
        TierwiseError: if that fails, as for want of space.
    """
    done = subprocess.run(
        ["cp", "-a", str(source), str(destination)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise TierwiseError(f"copying {source}: {done.stderr.strip()[-200:]}", "make room for it")
