"""Debian's MariaDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tierwise.host.users import server_user
from tierwise.lab.engines.mariadb import server
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.validation.servers.case_database import (
    CLIENT,
    DATABASE,
    INSTALL_TIMEOUT_S,
    CaseServer,
    calling_account,
    copy_files,
)
from tierwise.model.extras import pymysql
from tierwise.model.placement import Role

_LOG = "ib_logfile0"
_FIXED = {"skip-name-resolve": "1", "innodb-fast-shutdown": "1"}


class DebianMariadb(CaseServer, server.MariadbServer):
    """The redo log and temporary files have directories of their own by settings."""

    engine = "mariadb"
    studied = MariadbEngine
    installation = staticmethod(installed_mariadb)

    def __init__(self, settings: Mapping[str, str], *, binary_log: bool = False) -> None:
        self.settings = self.checked(settings)  # before a home is made
        super().__init__(self.engine, installed_mariadb(), server_user())
        self._binary_log = {"log-bin": "binlog", "server-id": "1"} if binary_log else {}
        self._log = self._temp = Path()

    def make_empty(self) -> None:
        """Run mariadb-install-db."""
        self._log = self._temp = self.data
        own = {name: value for name, value in self.settings.items() if name.startswith("innodb")}
        self.install(self.data, own, [f"--auth-root-socket-user={calling_account()}"], INSTALL_TIMEOUT_S)

    def finish_template(self) -> None:
        """Nothing is left to do."""

    def spread(self, places: Mapping[Role, Path]) -> None:
        """Move the redo log, and the files of the selected tables, which are linked."""
        self._log = self.own_directory(places[Role.LOG], "redo")
        self._temp = self.own_directory(places[Role.TEMP], "tmp")
        copy_files(self.data / _LOG, self._log / _LOG)
        (self.data / _LOG).unlink()
        for relation in self.selected:
            schema, table = relation.removeprefix("table:").split(".")
            file = self.data / schema / f"{table}.ibd"
            folder = places[Role.SELECTED] / schema
            if not folder.exists():
                self.own_directory(places[Role.SELECTED], schema)
            copy_files(file, folder / file.name)
            file.unlink()
            file.symlink_to(folder / file.name)

    def start(self) -> None:
        """Start it."""
        settings = {
            "innodb-log-group-home-dir": str(self._log),
            "tmpdir": str(self._temp),
            "socket": str(self.socket),
            "pid-file": str(self.home / "pid"),
            **_FIXED,
            **self.settings,
            "secure-file-priv": str(self.home),
        }
        self.run_with({**settings, **self._binary_log, "skip-networking": "1"})

    def make_account(self, name: str, password: str) -> None:
        """Make an account with all rights in the clients' database and none elsewhere."""
        self.query(f"CREATE OR REPLACE USER {name}@localhost IDENTIFIED BY '{password}'")
        self.query(f"GRANT ALL ON {DATABASE}.* TO {name}@localhost")

    def make_client(self) -> None:
        """Make the clients' database and account, whose files are those of ``secure-file-priv`` alone."""
        self.query(f"CREATE DATABASE {DATABASE}")
        self.make_account(CLIENT, "")
        self.query(f"GRANT FILE ON *.* TO {CLIENT}@localhost")

    def connect(self) -> pymysql.Connection[Any]:
        """A session of root, without a schema; only the account that tierwise runs as can open it."""
        return pymysql.connect(unix_socket=str(self.socket), user=calling_account(), autocommit=True)
