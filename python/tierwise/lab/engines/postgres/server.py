"""One PostgreSQL server process: settings, accounts, errors in one line, a second member of its log.

The superuser's sessions are in :data:`CONTROL`, which the load's account may not enter. They look names up
in ``pg_catalog`` alone, whatever ``ALTER DATABASE`` or ``ALTER ROLE`` set. In the load's database, everything
runs as :data:`CLIENT`: schema, load, catalogue, checks. So no statement, function, operator or index of a
workload is ever evaluated with more rights than the workload has.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tierwise.host import ledger
from tierwise.host.processes import Process
from tierwise.host.users import ServerUser, account_ids, write_file_for_user
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.postgres.binaries import (
    MEMORY_SETTING,
    PostgresBinaries,
    data_loss_messages,
    postgres_error,
)
from tierwise.lab.engines.postgres.file_roles import ARCHIVED
from tierwise.lab.engines.server_engine import ServerProcess
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import psycopg

SUPERUSER = "tierwise"
CLIENT = "tierwise_client"
"""Account of the load's sessions."""
DATABASE = "postgres"
"""The load's database."""
CHECKS = "tierwise_checks"
"""Schema of the functions of amcheck in the load's database."""
CONTROL = "template1"
"""Database of the superuser's sessions, whose commits do not count as the load's."""
CATALOGUE_ONLY = "options='-c search_path=pg_catalog'"
"""For the superuser: in the startup packet, so that it precedes all settings of databases and accounts."""

_DEFAULT_WORKERS = 8
"""Default of max_worker_processes and max_parallel_workers."""
_DEFAULT_CONNECTIONS = 100
_OWN_CONNECTIONS = 20
"""Connections for the control session, samplers, loaders and the server's superuser reserve."""


@dataclass(frozen=True)
class PostgresSettings:
    """The study's settings, with tierwise's own settings taken out."""

    server: Mapping[str, str]
    log_members: int
    """2: a second log member on the log's device; a commit waits for both."""
    segment_mib: int | None
    """Size of a log segment, fixed when the database is made."""

    @classmethod
    def split(cls, name: str, settings: Mapping[str, str]) -> PostgresSettings:
        """Take out what the server does not know, and check its values."""
        server = dict(settings)
        members = server.pop("log_members", "1")
        if members not in ("1", "2"):
            raise TierwiseError(f"engine {name}: setting log_members is {members!r}", "use 1 or 2")
        return cls(server, int(members), _segment_mib(name, server.pop("wal_segment_size", None)))


def _segment_mib(name: str, size: str | None) -> int | None:
    if size is None:
        return None
    match = re.fullmatch(r"(\d+)\s*MB", size)
    mib = int(match[1]) if match else 0
    if mib not in {1 << power for power in range(11)}:
        raise TierwiseError(
            f"engine {name}: setting wal_segment_size is {size!r}", "use a power of two from 1MB to 1024MB"
        )
    return mib


def settings_for_limits(limits: ResourceLimits) -> dict[str, str]:
    """Settings that follow from limits.

    A quarter of the memory for shared_buffers is what the manual recommends (section 19.4.1); the planner
    assumes a cache of three quarters. Parallelism counts the leader, so 1 means a query without workers.
    """
    settings = {}
    if limits.memory_bytes is not None:
        settings["shared_buffers"] = f"{max(limits.memory_bytes // 4 >> 10, 128)}kB"
        settings["effective_cache_size"] = f"{max(limits.memory_bytes * 3 // 4 >> 10, 128)}kB"
    if limits.parallelism is not None:
        helpers = limits.parallelism - 1
        settings["max_parallel_workers_per_gather"] = str(helpers)
        settings["max_parallel_maintenance_workers"] = str(helpers)
        settings["max_parallel_workers"] = str(max(_DEFAULT_WORKERS, helpers))
        settings["max_worker_processes"] = str(max(_DEFAULT_WORKERS, helpers))
    if limits.sessions is not None:
        settings["max_connections"] = str(max(_DEFAULT_CONNECTIONS, limits.sessions + _OWN_CONNECTIONS))
    return settings


def settings_for_archive(directory: Path) -> dict[str, str]:
    """Settings that copy each full segment to a directory and flush it there."""
    target = shlex.quote(str(directory)).replace("%", "%%")
    copy = f"dd if=%p of={target}/%f{ARCHIVED}.part bs=1M conv=fsync status=none"
    rename = f"mv {target}/%f{ARCHIVED}.part {target}/%f{ARCHIVED}"
    return {"archive_mode": "on", "archive_command": f"{copy} && {rename}"}


MEMBER = "tierwise_member"
"""Name of the receiver, and of the slot that keeps segments until the receiver has them."""

MEMBER_SETTINGS = {"synchronous_standby_names": MEMBER}
_STATE = f"SELECT state FROM pg_catalog.pg_stat_replication WHERE application_name = '{MEMBER}'"


class SynchronousWalReceiver:
    """Runs pg_receivewal, which writes the flushed log, flushes its copy and reports that."""

    def __init__(self, server: PostgresServer, directory: Path) -> None:
        """Write to ``directory``; the server must run with :data:`MEMBER_SETTINGS`."""
        self._server = server
        self._directory = directory
        self._process: Process | None = None

    def start(self, timeout_s: float) -> None:
        """Start receiving, and wait until commits can use the receiver."""
        program = self._server.bin / "pg_receivewal"
        arguments: list[str | Path] = ["-D", self._directory, "--no-password", "--slot", MEMBER, "--no-loop"]
        dsn = f"{self._server.control_dsn} application_name={MEMBER}"
        create = ["--create-slot", "--if-not-exists", "--slot", MEMBER, "-d", dsn]
        secrets = self._server.secrets
        self._server.run(program, create, timeout_s, secrets)
        self._process = self._server.launch(program, [*arguments, "--synchronous", "-d", dsn], secrets)
        deadline_s = time.monotonic() + timeout_s
        while self._server.query(_STATE) != [("streaming",)]:
            if not self._process.running or time.monotonic() > deadline_s:
                self.end()
                raise self._server.error("has no second member of its log")
            time.sleep(0.01)

    @property
    def pids(self) -> list[int]:
        """Pid of the receiver while it runs."""
        return [self._process.pid] if self._process is not None and self._process.running else []

    @property
    def lost(self) -> bool:
        """Whether the receiver has ended unexpectedly, so that commits block."""
        return self._process is not None and not self._process.running

    def end(self, timeout_s: float = 0) -> None:
        """Wait for it to end, as it does after a clean stop of the server, or kill it."""
        process, self._process = self._process, None
        if process is not None:
            process.wait_or_kill(timeout_s)


_MEMORY = Path("/dev/shm")


PORT = 5432
"""Number in the socket's file name; no TCP port is opened."""


class PostgresServer(ServerProcess):
    """The programs, the process, and a home for its socket and its log off the placed devices.

    A fast shutdown stops it; an immediate shutdown crashes it.
    """

    memory_setting: ClassVar = MEMORY_SETTING
    grave_lines = staticmethod(data_loss_messages)
    _stop_signal = signal.SIGINT
    _crash_signal = signal.SIGQUIT

    def __init__(self, name: str, binaries: PostgresBinaries, user: ServerUser | None) -> None:
        """Make the home, with a copy of the programs if ``user`` cannot reach them."""
        super().__init__(name, "postgres", user)
        self._shared: ledger.LedgerDirectory | None = None
        try:
            self._binaries = binaries.reachable_by(user, self._home.outer / "server")
        except BaseException:
            self._home.remove()
            raise
        self._secret, self._client_secret = secrets.token_hex(16), secrets.token_hex(16)

    @property
    def bin(self) -> Path:
        """Directory of the programs."""
        return self._binaries.bin

    @property
    def control_dsn(self) -> str:
        """Keywords and values of the superuser's sessions, without the password."""
        return f"{self._address(SUPERUSER, CONTROL)} {CATALOGUE_ONLY}"

    @property
    def address(self) -> str:
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
        return f"{self.control_dsn} password={self._secret}"

    def initdb(self, data: Path, arguments: Sequence[str | Path], timeout_s: float) -> None:
        """Make a cluster in ``data`` whose superuser has the password."""
        password = self._home.outer / "password"
        write_file_for_user(self.user, password, self._secret)
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
        with contextlib.closing(self.session(lambda: connect_autocommit(once))) as session:
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
        self._shared = ledger.make_directory("postgres-shared", parent=_MEMORY, owner=account_ids(self.user))
        (data / "pg_dynshmem").rmdir()
        (data / "pg_dynshmem").symlink_to(self._shared.path)

    def command(self, data: Path, settings: Mapping[str, str]) -> list[str | Path]:
        """``postgres`` on a data directory."""
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return [self.bin / "postgres", "-D", data, *options]

    def remove(self) -> None:
        """End the process if it runs, delete its shared memory and the home."""
        self.crash_stop()
        if self._shared is not None:
            self._shared.remove()
        super().remove()

    def connect(self) -> psycopg.Connection[Any]:
        """Open a connection of the superuser."""
        return connect_autocommit(self.superuser_dsn)

    def connect_client(self) -> psycopg.Connection[Any]:
        """Open a connection of the load's account."""
        return connect_autocommit(self.address)

    def driver_errors(self) -> tuple[type[Exception], ...]:
        """Those of the driver."""
        return (psycopg.Error,)

    def is_lost(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether a connection has ended."""
        return connection.closed

    def explain(self, what: str) -> TierwiseError:
        """Build the error from the last severe line."""
        return postgres_error(f"engine {self._name} {what}", self._recent_log())

    def _address(self, account: str, database: str) -> str:
        return f"host='{self.home}' port={PORT} user={account} dbname={database}"


def connect_autocommit(dsn: str) -> psycopg.Connection[Any]:
    """Open a connection on which each statement commits by itself."""
    return psycopg.connect(dsn, autocommit=True, application_name="tierwise")
