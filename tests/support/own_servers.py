"""Servers as an administrator runs them, with settings and names of files of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.postgres.binaries import embedded_postgres

ACCOUNT = "65534"
"""A server of databases refuses to run as root."""
_AS_ACCOUNT = ["setpriv", "--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]


@dataclass(frozen=True)
class OwnServer:
    """A running server."""

    pid: int
    home: Path
    engine: str

    def execute(self, *statements: str) -> None:
        """Run statements in a session of their own, which ends with them."""
        if self.engine == "postgres":
            with self.postgres() as session:
                for statement in statements:
                    session.execute(statement.encode())
            return
        with self.mariadb() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def postgres(self) -> psycopg.Connection[Any]:
        """A session of PostgreSQL's superuser."""
        return psycopg.connect(f"host={self.home} port=5432 user=postgres dbname=postgres", autocommit=True)

    def mariadb(self) -> pymysql.Connection[Any]:
        """A session of MariaDB's root."""
        return pymysql.connect(unix_socket=str(self.home / "socket"), user="root", autocommit=True)


@contextmanager
def postgres(home: Path, log: Path | None = None, **settings: str) -> Iterator[OwnServer]:
    """Start a PostgreSQL in a directory that every user can enter, with settings in its file.

    Args:
        home: where its files lie.
        log: an empty directory for its log, if that lies elsewhere.
        settings: by name.
    """
    programs, data = embedded_postgres().copied(home).bin, home / "data"
    os.chown(home, int(ACCOUNT), int(ACCOUNT))
    make = [*_AS_ACCOUNT, programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]
    if log is not None:
        os.chown(log, int(ACCOUNT), int(ACCOUNT))
        make += ["--waldir", log]
    subprocess.run(make, cwd="/", check=True, capture_output=True)
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    command = [*_AS_ACCOUNT, programs / "postgres", "-D", data, "-k", home, "-c", "listen_addresses="]
    with _running(command, home, signal.SIGINT) as process:
        server = OwnServer(process.pid, home, "postgres")
        _await(lambda: server.postgres().close(), process)
        yield server


@contextmanager
def mariadb(home: Path, options: Mapping[str, str] | None = None, **settings: str) -> Iterator[OwnServer]:
    """Start a MariaDB in a directory that every user can enter, with options, and settings in its file."""
    binaries, data, file = installed_mariadb(), home / "data", home / "my.cnf"
    fixed = ["--no-defaults", f"--datadir={data}", "--user=nobody", "--skip-test-db"]
    # A later start makes undo tablespaces only if nothing is left to purge.
    undo = [f"--{name}={value}" for name, value in settings.items() if name == "innodb_undo_tablespaces"]
    made = [*fixed, "--auth-root-authentication-method=normal", *undo]
    _install([binaries.installer, *made], data)
    lines = (f"{name} = {value}\n" for name, value in {"datadir": str(data), **settings}.items())
    file.write_text("[mariadbd]\n" + "".join(lines))
    for place in (home, data):
        os.chown(place, int(ACCOUNT), int(ACCOUNT))
    given = [f"--{name}={value}" for name, value in (options or {}).items()]
    own = [f"--socket={home / 'socket'}", f"--pid-file={home / 'pid'}", "--skip-networking", "--user=nobody"]
    command = [binaries.server, f"--defaults-file={file}", *own, *given]
    with _running(command, home, signal.SIGTERM) as process:
        server = OwnServer(process.pid, home, "mariadb")
        _await(lambda: server.mariadb().close(), process)
        yield server


INSTALLS = 3
"""Attempts: it failed in one of some 50 cases, where another server was made at the same time."""


def _install(command: list[Any], data: Path) -> None:
    """Make the system tables of a MariaDB; what each failed attempt said is on the standard output."""
    for _ in range(INSTALLS):
        done = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return
        print(done.stdout, done.stderr, sep="\n")
        shutil.rmtree(data, ignore_errors=True)
    raise AssertionError(f"{command[0]} ended with {done.returncode}")


@contextmanager
def _running(command: list[Any], home: Path, end: signal.Signals) -> Iterator[subprocess.Popen[bytes]]:
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(end)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(connect: Callable[[], None], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            return connect()
        except (psycopg.OperationalError, pymysql.OperationalError):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
