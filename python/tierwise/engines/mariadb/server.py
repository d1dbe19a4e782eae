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
from tierwise.engines.server_process import ServerProcess
from tierwise.host.users import ServerUser
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql

CLIENT = "tierwise_client"
"""Account of the load's sessions, which identifies them."""
_ROOT = "root"

_GRAVE = re.compile(r"\[ERROR\] (?:/\S+: )?(.*)|.*(No space left on device).*|FATAL ERROR: .*")

_FIXES = (
    (
        r"No space left on device|is full|errno: 28\b|Error number 28|Disk full",
        "give the device of that role more space, or load less",
    ),
    (r"Permission denied|errno: 13\b", "let the user of the server enter the directory: chmod o+x"),
    (r"Cannot allocate memory", "ask for less memory, as innodb_buffer_pool_size"),
)


class MariadbServer(ServerProcess):
    """The process, and a home for its socket and its log off the placed devices. It crashes by SIGKILL."""

    def __init__(self, name: str, binaries: MariadbBinaries, user: ServerUser | None) -> None:
        """Make the home.

        Args:
            name: of the engine, for messages.
        """
        super().__init__(name, "mariadb", user)
        self._binaries = binaries
        self._secret = secrets.token_hex(16)
        self._root_password = ""
        """Empty until root gets a password; until then, only the server's own user can reach it."""
        self._control: pymysql.Connection[Any] | None = None

    @property
    def socket(self) -> Path:
        """The socket, the only address that it listens on."""
        return self.home / "socket"

    @property
    def address(self) -> str:
        """Address as keywords and values, as the clients read it."""
        return f"socket={self.socket} user={CLIENT} password={self._secret} dbname={DATABASE}"

    def install(self, data: Path, settings: Mapping[str, str], timeout_s: float) -> None:
        """Make the system tables in a data directory and in the directories that settings name."""
        options = [f"--{name}={value}" for name, value in {"datadir": str(data), **settings}.items()]
        fixed = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        self.run(self._binaries.installer, [*fixed, *options], timeout_s)

    def make_client(self) -> None:
        """Give root a password; make the load's schema, and an account with privileges only on it."""
        self.query(f"SET PASSWORD FOR {_ROOT}@localhost = PASSWORD('{self._secret}')")
        self._root_password = self._secret
        self.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        self.query(f"CREATE USER {CLIENT}@localhost IDENTIFIED BY '{self._secret}'")
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
            if (data / DATABASE).is_dir():
                self._control.select_db(DATABASE)
        except BaseException:
            self.crash_stop()
            raise

    def connect(self) -> pymysql.Connection[Any]:
        """Open a session of the superuser."""
        return pymysql.connect(
            unix_socket=str(self.socket), user=_ROOT, password=self._root_password, autocommit=True
        )

    def query(self, sql: str) -> list[Any]:
        """Run one statement over the control connection and give its rows."""
        if self._control is None:
            raise self._down()
        try:
            with self._control.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except pymysql.MySQLError as error:
            message = (not self._control.open and self.failure()) or _first_line(error)
            raise TierwiseError(f"engine {self._name}: {message}", fix_for(message)) from error

    def explain(self, what: str) -> TierwiseError:
        """Build the error from the first severe line: later ones follow from it."""
        log = self._recent_log()
        cause = next(iter(grave_lines(log)), None) or (log.strip().splitlines() or ["no message"])[-1]
        return TierwiseError(f"engine {self._name} {what}: {cause}", fix_for(cause))

    def failure(self) -> str | None:
        """The last [ERROR] line of the log since the last start, if any."""
        return next(reversed(grave_lines(self._recent_log())), None)

    def _disconnect(self) -> None:
        if self._control is not None:
            with contextlib.suppress(pymysql.MySQLError):
                self._control.close()
            self._control = None

    def _connect(self, timeout_s: float) -> pymysql.Connection[Any]:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self.pid is None:
                raise self.error("cannot start")
            with contextlib.suppress(pymysql.OperationalError):
                return self.connect()
            time.sleep(0.01)
        raise self.error(f"took no connection within {timeout_s:g} s")


def grave_lines(log: str) -> list[str]:
    """Messages of a server's log that report a loss, oldest first."""
    found = (_GRAVE.search(line) for line in log.splitlines())
    return [match[1] or match.group() for match in found if match]


def fix_for(message: str) -> str:
    """The user's fix for a message of the server."""
    for pattern, fix in _FIXES:
        if re.search(pattern, message):
            return fix
    return "mend what the message names"


def _first_line(error: pymysql.MySQLError) -> str:
    text = str(error.args[1] if len(error.args) > 1 else error)
    return text.splitlines()[0] if text else type(error).__name__
