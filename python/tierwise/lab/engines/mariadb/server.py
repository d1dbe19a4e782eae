"""One MariaDB server process: its settings, its accounts, its errors in one line.

root's sessions have no current schema, and their statements name no object of the load. In the load's
schema, everything runs as :data:`CLIENT`: schema, load, statistics, checks. So no routine, trigger, view or
event of a workload ever runs with more rights than the workload has.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tierwise.host.users import ServerUser
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.mariadb.binaries import MariadbBinaries
from tierwise.lab.engines.mariadb.file_roles import BINLOG, DATABASE
from tierwise.lab.engines.server_engine import ServerProcess, fix_for_server_error
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import pymysql
from tierwise.model.placement import Role

CLIENT = "tierwise_client"
"""Account of the load's sessions, which identifies them."""
ROOT = "root"

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


def settings_for_limits(name: str, limits: ResourceLimits) -> dict[str, str]:
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


def settings_for_places(directories: Mapping[Role, Path], temp: Path, socket: Path) -> dict[str, str]:
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


def default_settings_for(directories: Mapping[Role, Path]) -> dict[str, str]:
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


def data_loss_messages(log: str) -> list[str]:
    """Messages of a server's log that report a loss, oldest first."""
    matches = (_GRAVE.search(line) for line in log.splitlines())
    return [match[1] or match.group() for match in matches if match]


class MariadbServer(ServerProcess):
    """The process, and a home for its socket and its log off the placed devices. It crashes by SIGKILL."""

    memory_setting: ClassVar = "innodb_buffer_pool_size"
    grave_lines = staticmethod(data_loss_messages)

    def __init__(self, name: str, binaries: MariadbBinaries, user: ServerUser | None) -> None:
        super().__init__(name, "mariadb", user)
        self._binaries = binaries
        self._client_secret = secrets.token_hex(16)
        self._root_password = ""
        """Empty until root gets a password; until then, only the server's own user can reach it."""

    @property
    def socket(self) -> Path:
        """The socket, the only address that it listens on."""
        return self.home / "socket"

    @property
    def address(self) -> str:
        """Address as keywords and values, as the clients read it."""
        return f"socket={self.socket} user={CLIENT} password={self._client_secret} dbname={DATABASE}"

    def command(self, data: Path, settings: Mapping[str, str]) -> list[str | Path]:
        """mariadbd on a data directory."""
        return [self._binaries.server, "--no-defaults", *command_line_options(data, settings)]

    def install(self, data: Path, settings: Mapping[str, str], access: list[str], timeout_s: float) -> None:
        """Make the system tables in a data directory and in the directories that settings name."""
        arguments = ["--no-defaults", *access, "--skip-test-db", *command_line_options(data, settings)]
        self.run(self._binaries.installer, arguments, timeout_s)

    def make_client(self) -> None:
        """Give root a password; make the load's schema, and an account with privileges only on it."""
        password = secrets.token_hex(16)
        self.query(f"SET PASSWORD FOR {ROOT}@localhost = PASSWORD('{password}')")
        self._root_password = password
        self.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        self.query(f"CREATE USER {CLIENT}@localhost IDENTIFIED BY '{self._client_secret}'")
        self.query(f"GRANT ALL ON {DATABASE}.* TO {CLIENT}@localhost")
        self._has_client = True

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

    def driver_errors(self) -> tuple[type[Exception], ...]:
        """Those of the driver, and of its socket."""
        return pymysql.MySQLError, OSError

    def is_lost(self, connection: pymysql.Connection[Any]) -> bool:
        """Whether a connection has ended."""
        return not connection.open

    def explain(self, what: str) -> TierwiseError:
        """Build the error from the first severe line: later ones follow from it."""
        log = self._recent_log()
        cause = next(iter(data_loss_messages(log)), None) or (log.strip().splitlines() or ["no message"])[-1]
        return TierwiseError(
            f"engine {self._name} {what}: {cause}", fix_for_server_error(cause, self.memory_setting)
        )


def command_line_options(data: Path, settings: Mapping[str, str]) -> list[str]:
    """The data directory and settings as options of a command line."""
    return [f"--{name}={value}" for name, value in {"datadir": str(data), **settings}.items()]
