"""One PostgreSQL server process: starts, queries and stops it, and reports its errors in one line."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tierwise.engines.postgres.binaries import Binaries
from tierwise.engines.postgres.errors import explain, fix_for, grave_lines
from tierwise.engines.server_process import ServerProcess
from tierwise.host import ledger
from tierwise.host.users import ServerUser, ids, write_for
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg

SUPERUSER = "tierwise"
CLIENT = "tierwise_client"
"""Account of the load's sessions, which owns the database."""
_MEMORY = Path("/dev/shm")


class PostgresServer(ServerProcess):
    """The programs, the process, and a home for its socket and its log off the placed devices.

    A fast shutdown stops it; an immediate shutdown crashes it.
    """

    _stop_signal = signal.SIGINT
    _crash_signal = signal.SIGQUIT

    def __init__(
        self, name: str, binaries: Binaries, user: ServerUser | None, *, socket: tuple[Path | None, int]
    ) -> None:
        """Make the home, with a copy of the programs if ``user`` cannot reach them.

        Args:
            name: of the engine, for messages.
            socket: its directory (the home when ``None``) and the port number in its file name.
        """
        super().__init__(name, "postgres", user)
        self._shared: ledger.Directory | None = None
        try:
            self._binaries = binaries.reachable_by(user, self._home.outer / "server")
        except BaseException:
            self._home.remove()
            raise
        self._secret = secrets.token_hex(16)
        self.socket_dir, self.port = socket[0] or self.home, socket[1]
        self._control: psycopg.Connection[Any] | None = None

    @property
    def bin(self) -> Path:
        """Directory of the programs."""
        return self._binaries.bin

    @property
    def dsn(self) -> str:
        """Keywords and values of the superuser's sessions, without the password."""
        return self._dsn_of(SUPERUSER)

    @property
    def client_dsn(self) -> str:
        """Keywords and values of the load's sessions, as libpq and tokio-postgres read them."""
        return f"{self._dsn_of(CLIENT)} password={self._secret}"

    @property
    def secrets(self) -> dict[str, str]:
        """Environment with the password for PostgreSQL's programs; any user can read a command line."""
        return {"PGPASSWORD": self._secret}

    @property
    def sampler_dsn(self) -> str:
        """For monitoring sessions: in another database, so that their commits do not count as the load's."""
        return f"{self.dsn.replace('dbname=postgres', 'dbname=template1')} password={self._secret}"

    def initdb(self, data: Path, arguments: Sequence[str | Path], timeout_s: float) -> None:
        """Make a cluster in ``data`` whose superuser has the password."""
        password = self._home.outer / "password"
        write_for(self._user, password, self._secret)
        access: list[str | Path] = ["--username", SUPERUSER, "--auth", "scram-sha-256", "--pwfile", password]
        self.run(self.bin / "initdb", ["-D", data, *access, *arguments], timeout_s)
        password.unlink()
        self._adopt(data)

    def make_client(self) -> None:
        """Make the account of the load's sessions, which owns the database and has the same password."""
        self.query(f"CREATE ROLE {CLIENT} LOGIN PASSWORD '{self._secret}'")
        self.query(f"ALTER DATABASE postgres OWNER TO {CLIENT}")

    def _adopt(self, data: Path) -> None:
        """Move the shared memory of a new data directory to a directory of its own in memory.

        A killed server leaves its shared memory behind. In /dev/shm itself its owner would be unknown;
        in ``data`` it would cause I/O on the device under test.
        """
        self._shared = ledger.directory("postgres-shared", parent=_MEMORY, owner=ids(self._user))
        (data / "pg_dynshmem").rmdir()
        (data / "pg_dynshmem").symlink_to(self._shared.path)

    def start(
        self, data: Path, settings: Mapping[str, str], timeout_s: float, began: Callable[[], None]
    ) -> None:
        """Start postgres, its settings on the command line."""
        options = [f"-c{name}={value}" for name, value in settings.items()]
        self._process = self.launch(self.bin / "postgres", ["-D", data, *options])
        try:
            began()
            self._control = self._connect(data, timeout_s)
        except BaseException:
            self.crash_stop()
            raise

    def remove(self) -> None:
        """End the process if it runs, delete its shared memory and the home."""
        self.crash_stop()
        if self._shared is not None:
            self._shared.remove()
        super().remove()

    @contextlib.contextmanager
    def as_client(self) -> Iterator[None]:
        """Make objects as the load's account, with only its privileges."""
        self.query(f"SET SESSION AUTHORIZATION {CLIENT}")
        try:
            yield
        finally:
            with contextlib.suppress(TierwiseError):  # of a server that has gone, another error tells
                self.query("RESET SESSION AUTHORIZATION")

    def query(self, sql: str) -> list[Any]:
        """Run one statement over the control connection and give its rows."""
        cursor = self._execute(sql)
        return cursor.fetchall() if cursor.description else []

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """Run one query over the control connection and give its rows by column."""
        cursor = self._execute(sql)
        columns = [column.name for column in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def _execute(self, sql: str) -> psycopg.Cursor[Any]:
        if self._control is None:
            raise self._down()
        try:
            return self._control.execute(sql.encode())
        except psycopg.Error as error:
            message = (self._control.broken and self.failure()) or str(error).splitlines()[0]
            raise TierwiseError(f"engine {self._name}: {message}", fix_for(message)) from error

    def failure(self) -> str | None:
        """The last grave line of the log since the last start, if any."""
        return next(reversed(grave_lines(self._recent_log())), None)

    def explain(self, what: str) -> TierwiseError:
        """Build the error from the last severe line."""
        return explain(f"engine {self._name} {what}", self._recent_log(), self._binaries.setting_names)

    def _dsn_of(self, account: str) -> str:
        return f"host='{self.socket_dir}' port={self.port} user={account} dbname=postgres"

    def _disconnect(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def _connect(self, data: Path, timeout_s: float) -> psycopg.Connection[Any]:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self.pid is None:
                raise self.error("cannot start")
            with contextlib.suppress(psycopg.OperationalError):
                control = psycopg.connect(
                    self.dsn, password=self._secret, autocommit=True, application_name="tierwise"
                )
                if self._answers_on(control, data):
                    return control
                control.close()
            time.sleep(0.01)
        raise self.error(f"took no connection within {timeout_s:g} s")

    @staticmethod
    def _answers_on(control: psycopg.Connection[Any], data: Path) -> bool:
        """Whether our server answers, not another server that has the socket while ours fails to start."""
        shown = control.execute("SHOW data_directory").fetchone()
        return shown is not None and Path(shown[0]).resolve() == data.resolve()
