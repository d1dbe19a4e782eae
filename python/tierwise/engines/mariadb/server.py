"""One MariaDB server process: starts, queries and stops it, and reports its errors in one line."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tierwise.engines.mariadb.binaries import MariadbBinaries
from tierwise.engines.mariadb.files import DATABASE
from tierwise.engines.mariadb.session import CLIENT, ROOT, MariadbSession, first_line, fix_for
from tierwise.engines.server_process import ServerProcess
from tierwise.host.users import ServerUser
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql

_GRAVE = re.compile(r"\[ERROR\] (?:/\S+: )?(.*)|.*(No space left on device).*|FATAL ERROR: .*")


class MariadbServer(ServerProcess):
    """The process, and a home for its socket and its log off the placed devices. It crashes by SIGKILL."""

    def __init__(self, name: str, binaries: MariadbBinaries, user: ServerUser | None) -> None:
        """Make the home.

        Args:
            name: of the engine, for messages.
        """
        super().__init__(name, "mariadb", user)
        self._binaries = binaries
        self._client_secret = secrets.token_hex(16)
        self._root_password = ""
        """Empty until root gets a password; until then, only the server's own user can reach it."""
        self._control: MariadbSession | None = None
        self._client: MariadbSession | None = None

    @property
    def socket(self) -> Path:
        """The socket, the only address that it listens on."""
        return self.home / "socket"

    @property
    def address(self) -> str:
        """Address as keywords and values, as the clients read it."""
        return f"socket={self.socket} user={CLIENT} password={self._client_secret} dbname={DATABASE}"

    def install(self, data: Path, settings: Mapping[str, str], timeout_s: float) -> None:
        """Make the system tables in a data directory and in the directories that settings name."""
        options = [f"--{name}={value}" for name, value in {"datadir": str(data), **settings}.items()]
        fixed = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        self.run(self._binaries.installer, [*fixed, *options], timeout_s)

    def make_client(self) -> None:
        """Give root a password; make the load's schema, and an account with privileges only on it."""
        password = secrets.token_hex(16)
        self.query(f"SET PASSWORD FOR {ROOT}@localhost = PASSWORD('{password}')")
        self._root_password = password
        self.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        self.query(f"CREATE USER {CLIENT}@localhost IDENTIFIED BY '{self._client_secret}'")
        self.query(f"GRANT ALL ON {DATABASE}.* TO {CLIENT}@localhost")

    def start(
        self, data: Path, settings: Mapping[str, str], timeout_s: float, began: Callable[[], None]
    ) -> None:
        """Start mariadbd, its settings on the command line."""
        options = [f"--{name}={value}" for name, value in {"datadir": str(data), **settings}.items()]
        self._process = self.launch(self._binaries.server, ["--no-defaults", *options])
        try:
            began()
            self._control = self._connect(timeout_s)
            if self._root_password:  # it has a client too
                self._client = self._session(self.connect_client)
        except BaseException:
            self.crash_stop()
            raise

    def connect(self) -> pymysql.Connection[Any]:
        """Open a session of root, without a schema."""
        return pymysql.connect(
            unix_socket=str(self.socket), user=ROOT, password=self._root_password, autocommit=True
        )

    def connect_client(self) -> pymysql.Connection[Any]:
        """Open a session of the load's account in the load's schema."""
        return pymysql.connect(
            unix_socket=str(self.socket),
            user=CLIENT,
            password=self._client_secret,
            database=DATABASE,
            autocommit=True,
        )

    @property
    def client(self) -> MariadbSession:
        """tierwise's own session of the load's account, for all that concerns the load's schema.

        Raises:
            TierwiseError: if the server is down.
        """
        if self._client is None:
            raise self._down()
        return self._client

    def query(self, sql: str) -> list[Any]:
        """Run one statement of tierwise's own as root and give its rows."""
        if self._control is None:
            raise self._down()
        return self._control.query(sql)

    def explain(self, what: str) -> TierwiseError:
        """Build the error from the first severe line: later ones follow from it."""
        log = self._recent_log()
        cause = next(iter(grave_lines(log)), None) or (log.strip().splitlines() or ["no message"])[-1]
        return TierwiseError(f"engine {self._name} {what}: {cause}", fix_for(cause))

    def failure(self) -> str | None:
        """The last [ERROR] line of the log since the last start, if any."""
        return next(reversed(grave_lines(self._recent_log())), None)

    def _disconnect(self) -> None:
        for session in (self._client, self._control):
            if session is not None:
                session.close()
        self._client = self._control = None

    def _session(self, connect: Callable[[], pymysql.Connection[Any]]) -> MariadbSession:
        try:
            return MariadbSession(self._name, connect(), self.failure)
        except pymysql.MySQLError as error:
            message = self.failure() or first_line(error)
            raise TierwiseError(f"engine {self._name}: {message}", fix_for(message)) from error

    def _connect(self, timeout_s: float) -> MariadbSession:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self.pid is None:
                raise self.error("cannot start")
            with contextlib.suppress(TierwiseError):
                return self._session(self.connect)
            time.sleep(0.01)
        raise self.error(f"took no connection within {timeout_s:g} s")


def grave_lines(log: str) -> list[str]:
    """Messages of a server's log that report a loss, oldest first."""
    found = (_GRAVE.search(line) for line in log.splitlines())
    return [match[1] or match.group() for match in found if match]
