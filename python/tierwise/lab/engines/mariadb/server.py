"""One MariaDB server process: its settings, its start and stop, its errors in one line."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tierwise.host.users import ServerUser
from tierwise.lab.engines.base import Limits
from tierwise.lab.engines.mariadb.binaries import MariadbBinaries
from tierwise.lab.engines.mariadb.files import BINLOG, DATABASE
from tierwise.lab.engines.mariadb.session import CLIENT, ROOT, MariadbSession, first_line, fix_for
from tierwise.lab.engines.server_engine import ServerProcess
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.model.placement import Role

_BESIDES_POOL_MIB = 80
"""Measured with 10.11: at most 60 MB with 20 sessions and a load; the rest is for cached file pages."""
_SMALLEST_POOL_MIB = 16
_DEFAULT_CONNECTIONS = 151
_OWN_CONNECTIONS = 20
"""Connections for the control session, samplers and loaders."""

_ALWAYS = {
    # A server that dumps its buffer pool and reloads it never starts cold.
    "innodb_buffer_pool_dump_at_shutdown": "0",
    "innodb_buffer_pool_load_at_startup": "0",
    "skip_networking": "1",
    "skip_name_resolve": "1",
    # These metrics count commits.
    "innodb_monitor_enable": "trx_%",
}


def for_limits(name: str, limits: Limits) -> dict[str, str]:
    """Settings that follow from limits.

    Raises:
        TierwiseError: if there is too little memory for the server to run at all.
    """
    settings = {}
    if limits.sessions is not None:
        settings["max_connections"] = str(max(_DEFAULT_CONNECTIONS, limits.sessions + _OWN_CONNECTIONS))
    if limits.memory_bytes is not None:
        settings |= _for_memory(name, limits.memory_bytes)
    return settings


def _for_memory(name: str, memory_bytes: int) -> dict[str, str]:
    """Half of the memory for the buffer pool, or what :data:`_BESIDES_POOL_MIB` leaves if that is less.

    The caches of engines other than InnoDB, and the log buffer, are limited to the remainder.
    """
    memory_mib = memory_bytes >> 20
    pool_mib = min(memory_mib // 2, memory_mib - _BESIDES_POOL_MIB)
    if pool_mib < _SMALLEST_POOL_MIB:
        least_mib = _SMALLEST_POOL_MIB + _BESIDES_POOL_MIB
        raise TierwiseError(f"engine {name} cannot run in {memory_mib}M of memory", f"give it {least_mib}M")
    return {
        "innodb_buffer_pool_size": f"{pool_mib}M",
        "innodb_log_buffer_size": f"{min(16, max(2, memory_mib // 32))}M",
        "aria_pagecache_buffer_size": f"{min(128, max(4, memory_mib // 16))}M",
        "key_buffer_size": "1M",
    }


def for_places(directories: Mapping[Role, Path], temp: Path, socket: Path) -> dict[str, str]:
    """Settings that put each role's files in its directory; the system's is the data directory.

    Args:
        temp: directory of temporary files; beside the system's if the role has none of its own.
    """
    # InnoDB resolves paths relative to the data directory.
    way = os.path.relpath(temp, directories[Role.SYSTEM])
    placed = {
        **_ALWAYS,
        "socket": str(socket),
        "tmpdir": str(temp),
        "innodb_temp_data_file_path": f"{way}/ibtmp1:12M:autoextend",
    }
    if Role.LOG in directories:
        placed["innodb_log_group_home_dir"] = str(directories[Role.LOG])
    if Role.UNDO in directories:
        placed["innodb_undo_directory"] = str(directories[Role.UNDO])
    if Role.ARCHIVE in directories:
        placed["log_bin"] = str(directories[Role.ARCHIVE] / BINLOG)
    return placed


def defaults_for(directories: Mapping[Role, Path]) -> dict[str, str]:
    """Defaults that a placement needs besides directories, unless the study overrides them."""
    settings = {}
    if Role.UNDO in directories:
        # Without separate undo tablespaces, the default, undo lies in the system tablespace.
        settings["innodb_undo_tablespaces"] = "3"
    if Role.ARCHIVE in directories:
        settings["sync_binlog"] = "1"
        # Without it, only a superuser may make functions and triggers, for the sake of replicas.
        settings["log_bin_trust_function_creators"] = "1"
    return settings


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
    matches = (_GRAVE.search(line) for line in log.splitlines())
    return [match[1] or match.group() for match in matches if match]
