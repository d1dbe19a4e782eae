"""Debian's newest PostgreSQL."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import Target, of_pid
from tierwise.lab.engines.documented import checked
from tierwise.lab.engines.postgres.binaries import system
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.engines.postgres.session import CATALOGUE_ONLY
from tierwise.lab.validation.servers.base import CLIENT, DATABASE, START_TIMEOUT_S, Server, caller, copy_files
from tierwise.model.extras import psycopg
from tierwise.model.placement import Role

_SUPERUSER = "postgres"
_CONTROL = "postgres"
"""Database of the superuser's sessions, which the clients' account may not enter."""
_ACCESS = f"""\
local all {_SUPERUSER} peer map=tierwise
local {DATABASE} {CLIENT} trust
"""
"""The socket is in a directory that only the server's own account can enter."""
_FOLDER = "postgres"
_FIXED = {"unix_socket_permissions": "0700", "log_min_messages": "fatal", "logging_collector": "off"}


class PostgresServer(Server):
    """The log and temporary files can be placed separately, through links from the data directory."""

    engine = "postgres"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Find the programs."""
        super().__init__(checked(self.engine, settings, PostgresEngine.allowed_settings()))
        self._binaries = system()

    @property
    def programs(self) -> Path:
        """Directory of the server's and the clients' programs."""
        return self._binaries.bin

    def version(self) -> str:
        """Version reported by the server."""
        return self._binaries.version

    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Make a cluster, fill it, checkpoint and stop it."""
        self.data = self.own_directory(self.home, _FOLDER)
        access = ["--auth-local=peer", "--auth-host=reject", "-U", _SUPERUSER]
        self.run([self.programs / "initdb", "-D", self.data, *access, "--no-sync"])
        self.start()
        try:
            prepare()
            self._move_selected()
            self._execute("CHECKPOINT")
        finally:
            self.stop()
        copy_files(self.data, folder / _FOLDER)
        shutil.rmtree(self.data)

    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy the cluster; move ``pg_wal`` and ``pgsql_tmp`` to places of their own and link them."""
        root = self.own_directory(places[Role.DATA], "cluster")
        copy_files(template / _FOLDER, root / _FOLDER)
        self.data = root / _FOLDER
        self._link(places[Role.LOG], self.data / "pg_wal")
        self._link(places[Role.TEMP], self.data / "base" / "pgsql_tmp")
        for tablespace in (self.data / "pg_tblspc").iterdir():
            self._link(places[Role.SELECTED], tablespace)
        self.places = dict(places)

    def start(self) -> None:
        """Start it, and make the clients' account and database."""
        settings = {
            **_FIXED,
            "unix_socket_directories": str(self.home),
            "listen_addresses": "",
            "port": str(self.port),
            **self.settings,
            **self._access_files(),
        }
        options = [f"-c{key}={value}" for key, value in settings.items()]
        self.launch([self.programs / "postgres", "-D", self.data, *options])
        with self._connect() as connection:
            known = connection.execute("SELECT FROM pg_catalog.pg_database WHERE datname = %s", [DATABASE])
            if known.fetchone() is None:
                connection.execute(f"CREATE ROLE {CLIENT} LOGIN".encode())
                connection.execute(f"CREATE DATABASE {DATABASE} OWNER {CLIENT}".encode())

    def target(self) -> Target | None:
        """The server, found like ``tierwise record --engine postgres`` does."""
        return of_pid(self.pid)

    def dsn(self) -> Dsn | None:
        """The superuser's, who may see the sizes of files; names are needed to select tables only."""
        return Dsn("postgresql", self._address(_CONTROL)) if self.selected else None

    def _move_selected(self) -> None:
        """Put the selected tables and indexes into a tablespace inside the cluster."""
        if not self.selected:
            return
        with self._connect(DATABASE) as connection:
            connection.execute("SET allow_in_place_tablespaces = on")
            connection.execute("CREATE TABLESPACE selected LOCATION ''")
            for relation in self.selected:
                kind, name = relation.split(":")
                connection.execute(f"ALTER {kind.upper()} {name} SET TABLESPACE selected".encode())

    def _access_files(self) -> dict[str, str]:
        """Settings that name the files of access, which are out of the server's own reach."""
        files = {"hba_file": _ACCESS, "ident_file": f'tierwise "{caller()}" {_SUPERUSER}\n'}
        return {name: str(self.input_file(name, text)) for name, text in files.items()}

    def _execute(self, sql: str) -> None:
        with self._connect() as connection:
            connection.execute(sql.encode())

    def _link(self, place: Path, folder: Path) -> None:
        """Move a folder of the cluster to its own place, unless the two are the same."""
        moved = self.own_directory(place, folder.name)
        for path in folder.iterdir() if folder.exists() else ():
            copy_files(path, moved)
        shutil.rmtree(folder, ignore_errors=True)
        folder.symlink_to(moved)

    def _address(self, database: str) -> str:
        """The superuser's, in libpq's keywords."""
        return f"host='{self.home}' port={self.port} user={_SUPERUSER} dbname={database}"

    def _connect(self, database: str = _CONTROL) -> psycopg.Connection[Any]:
        """A session of the superuser, which only the account that tierwise runs as can open."""
        until_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until_s:
            if self._process is None or not self._process.running:
                raise self.error("did not start")
            with contextlib.suppress(psycopg.OperationalError):
                return psycopg.connect(f"{self._address(database)} {CATALOGUE_ONLY}", autocommit=True)
            time.sleep(0.02)
        raise self.error(f"took no connection within {START_TIMEOUT_S:g} s")

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGINT
