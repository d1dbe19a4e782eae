"""Debian's newest PostgreSQL."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from tierwise.capture.sql_session import Dsn
from tierwise.host.users import server_user
from tierwise.lab.engines.postgres import server
from tierwise.lab.engines.postgres.binaries import system_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.validation.servers.case_database import (
    CLIENT,
    DATABASE,
    INSTALL_TIMEOUT_S,
    CaseServer,
    calling_account,
    copy_files,
)
from tierwise.model.placement import Role

_SUPERUSER = "postgres"
_CONTROL = "postgres"
"""Database of the superuser's sessions, which the clients' account may not enter."""
_ACCESS = f"""\
local all {_SUPERUSER} peer map=tierwise
local {DATABASE} {CLIENT} trust
"""
"""The socket is in a directory that only the server's own account can enter."""
_FIXED = {"unix_socket_permissions": "0700", "log_min_messages": "fatal", "logging_collector": "off"}


class DebianPostgres(CaseServer, server.PostgresServer):
    """The log and temporary files can be placed separately, through links from the data directory."""

    engine = "postgres"
    studied = PostgresEngine
    installation = staticmethod(system_postgres)

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = self.checked(settings)  # before a home is made
        super().__init__(self.engine, system_postgres(), server_user())

    @property
    def superuser_dsn(self) -> str:
        """Keywords of the superuser, which only the account that tierwise runs as can be."""
        return f"{self._address(_SUPERUSER, _CONTROL)} {server.CATALOGUE_ONLY}"

    def tool(self, program: str) -> list[str | Path]:
        """A client program of the installation, with the clients' login."""
        return [self.bin / program, "-h", self.home, "-p", str(server.PORT), "-U", CLIENT]

    def make_empty(self) -> None:
        """Run initdb."""
        access = ["--auth-local=peer", "--auth-host=reject", "-U", _SUPERUSER]
        self.run(self.bin / "initdb", ["-D", self.data, *access, "--no-sync"], INSTALL_TIMEOUT_S)

    def finish_template(self) -> None:
        """Put the selected tables and indexes into a tablespace inside the cluster; write a checkpoint."""
        if self.selected:
            dsn = f"{self._address(_SUPERUSER, DATABASE)} {server.CATALOGUE_ONLY}"
            with contextlib.closing(self.session(lambda: server.connect_autocommit(dsn))) as session:
                session.query("SET allow_in_place_tablespaces = on")
                session.query("CREATE TABLESPACE selected LOCATION ''")
                for relation in self.selected:
                    kind, name = relation.split(":")
                    session.query(f"ALTER {kind.upper()} {name} SET TABLESPACE selected")
        self.query("CHECKPOINT")

    def spread(self, places: Mapping[Role, Path]) -> None:
        """Move ``pg_wal``, ``pgsql_tmp`` and tablespaces, and link them."""
        self._link(places[Role.LOG], self.data / "pg_wal")
        self._link(places[Role.TEMP], self.data / "base" / "pgsql_tmp")
        for tablespace in (self.data / "pg_tblspc").iterdir():
            self._link(places[Role.SELECTED], tablespace)

    def start(self) -> None:
        """Start it; the files of access are out of the server's own reach."""
        access = {"hba_file": _ACCESS, "ident_file": f'tierwise "{calling_account()}" {_SUPERUSER}\n'}
        settings = {
            **_FIXED,
            "unix_socket_directories": str(self.home),
            "listen_addresses": "",
            "port": str(server.PORT),
            **self.settings,
            **{name: str(self.input_file(name, text)) for name, text in access.items()},
        }
        self.run_with(settings)

    def make_client(self) -> None:
        """Make the clients' account and database."""
        self.query(f"CREATE ROLE {CLIENT} LOGIN")
        self.query(f"CREATE DATABASE {DATABASE} OWNER {CLIENT}")

    def dsn(self) -> Dsn | None:
        """The superuser's, who may see the sizes of files; names are needed to select tables only."""
        return Dsn("postgresql", self._address(_SUPERUSER, _CONTROL)) if self.selected else None

    def _link(self, place: Path, folder: Path) -> None:
        """Move a folder of the cluster to its own place, unless the two are the same."""
        moved = self.own_directory(place, folder.name)
        for path in folder.iterdir() if folder.exists() else ():
            copy_files(path, moved)
        shutil.rmtree(folder, ignore_errors=True)
        folder.symlink_to(moved)
