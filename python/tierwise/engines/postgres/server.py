"""One PostgreSQL server process: starts, queries and stops it, and reports its errors in one line."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tierwise.engines.postgres.binaries import Binaries
from tierwise.engines.postgres.errors import explain, fix_for, grave_lines
from tierwise.engines.postgres.session import (
    CATALOGUE_ONLY,
    CHECKS,
    CLIENT,
    CONTROL,
    DATABASE,
    SUPERUSER,
    PostgresSession,
)
from tierwise.engines.server_process import ServerProcess
from tierwise.host import ledger
from tierwise.host.users import ServerUser, ids, write_for
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg

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
        self._secret, self._client_secret = secrets.token_hex(16), secrets.token_hex(16)
        self.socket_dir, self.port = socket[0] or self.home, socket[1]
        self._control: PostgresSession | None = None
        self._has_client = False
        self._client: PostgresSession | None = None

    @property
    def bin(self) -> Path:
        """Directory of the programs."""
        return self._binaries.bin

    @property
    def dsn(self) -> str:
        """Keywords and values of the superuser's sessions, without the password."""
        return f"{self._address(SUPERUSER, CONTROL)} {CATALOGUE_ONLY}"

    @property
    def client_dsn(self) -> str:
        """Keywords and values of the load's sessions, whose options replace the caller's PGOPTIONS."""
        options = "options='-c application_name=tierwise_client'"
        return f"{self._address(CLIENT, DATABASE)} {options} password={self._client_secret}"

    @property
    def secrets(self) -> dict[str, str]:
        """Environment with the password for PostgreSQL's programs; any user can read a command line."""
        return {"PGPASSWORD": self._secret}

    @property
    def superuser_dsn(self) -> str:
        """Keywords and values of the superuser's sessions, with the password."""
        return f"{self.dsn} password={self._secret}"

    @property
    def client(self) -> PostgresSession:
        """tierwise's own session of the load's account, for all that concerns the load's database.

        Raises:
            TierwiseError: if the server is down.
        """
        if self._client is None:
            raise self._down()
        return self._client

    def initdb(self, data: Path, arguments: Sequence[str | Path], timeout_s: float) -> None:
        """Make a cluster in ``data`` whose superuser has the password."""
        password = self._home.outer / "password"
        write_for(self._user, password, self._secret)
        access: list[str | Path] = ["--username", SUPERUSER, "--auth", "scram-sha-256", "--pwfile", password]
        self.run(self.bin / "initdb", ["-D", data, *access, *arguments], timeout_s)
        password.unlink()
        self._adopt(data)

    def make_client(self) -> None:
        """Make the account of the load's sessions, and give it the load's database.

        This is the only time that the superuser enters that database: the account cannot have been there.
        """
        self.query(f"CREATE ROLE {CLIENT} LOGIN PASSWORD '{self._client_secret}'")
        self.query(f"REVOKE CONNECT, TEMPORARY ON DATABASE {CONTROL} FROM PUBLIC")
        self.query(f"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {DATABASE} TO {CLIENT}")
        once = f"{self._address(SUPERUSER, DATABASE)} {CATALOGUE_ONLY} password={self._secret}"
        with contextlib.closing(self._session(once)) as session:
            session.query(f"ALTER SCHEMA public OWNER TO {CLIENT}")
            if session.query("SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'amcheck'"):
                session.query(f"CREATE SCHEMA {CHECKS}")
                session.query(f"CREATE EXTENSION amcheck SCHEMA {CHECKS}")
                session.query(f"GRANT USAGE ON SCHEMA {CHECKS} TO {CLIENT}")
                session.query(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {CHECKS} TO {CLIENT}")
        self._has_client = True

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
            if self._has_client:
                self._client = self._session(self.client_dsn)
        except BaseException:
            self.crash_stop()
            raise

    def remove(self) -> None:
        """End the process if it runs, delete its shared memory and the home."""
        self.crash_stop()
        if self._shared is not None:
            self._shared.remove()
        super().remove()

    def query(self, sql: str) -> list[Any]:
        """Run one statement of tierwise's own as the superuser and give its rows."""
        return self.control.query(sql)

    @property
    def control(self) -> PostgresSession:
        """The superuser's session.

        Raises:
            TierwiseError: if the server is down.
        """
        if self._control is None:
            raise self._down()
        return self._control

    def failure(self) -> str | None:
        """The last grave line of the log since the last start, if any."""
        return next(reversed(grave_lines(self._recent_log())), None)

    def explain(self, what: str) -> TierwiseError:
        """Build the error from the last severe line."""
        return explain(f"engine {self._name} {what}", self._recent_log())

    def _address(self, account: str, database: str) -> str:
        return f"host='{self.socket_dir}' port={self.port} user={account} dbname={database}"

    def _disconnect(self) -> None:
        for session in (self._client, self._control):
            if session is not None:
                session.close()
        self._client = self._control = None

    def _session(self, dsn: str) -> PostgresSession:
        try:
            opened = psycopg.connect(dsn, autocommit=True, application_name="tierwise")
        except psycopg.Error as error:
            message = self.failure() or str(error).splitlines()[0]
            raise TierwiseError(f"engine {self._name}: {message}", fix_for(message)) from error
        return PostgresSession(self._name, opened, self.failure)

    def _connect(self, data: Path, timeout_s: float) -> PostgresSession:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self.pid is None:
                raise self.error("cannot start")
            with contextlib.suppress(TierwiseError):
                control = self._session(self.superuser_dsn)
                if self._answers_on(control, data):
                    return control
                control.close()
            time.sleep(0.01)
        raise self.error(f"took no connection within {timeout_s:g} s")

    @staticmethod
    def _answers_on(control: PostgresSession, data: Path) -> bool:
        """Whether our server answers, not another server that has the socket while ours fails to start."""
        ((shown,),) = control.query("SHOW data_directory")
        return Path(shown).resolve() == data.resolve()
