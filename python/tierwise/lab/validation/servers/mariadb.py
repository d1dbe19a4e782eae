"""Debian's MariaDB."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tierwise.capture.target import Target, of_pid
from tierwise.lab.engines.documented import checked
from tierwise.lab.engines.mariadb.binaries import installed
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.validation.servers.base import CLIENT, DATABASE, START_TIMEOUT_S, Server, caller, copy_files
from tierwise.model.extras import pymysql
from tierwise.model.placement import Role

_FOLDER = "mariadb"
_LOG = "ib_logfile0"
_FIXED = {"skip-name-resolve": "1", "innodb-fast-shutdown": "1"}


class MariadbServer(Server):
    """The redo log and temporary files have directories of their own by settings."""

    engine = "mariadb"

    def __init__(self, settings: Mapping[str, str], *, binary_log: bool = False) -> None:
        """Find the programs.

        Args:
            settings: settings of the server.
            binary_log: write a binary log, with the data.
        """
        super().__init__(checked(self.engine, settings, MariadbEngine.allowed_settings()))
        self._binary_log = ["--log-bin=binlog", "--server-id=1"] if binary_log else []
        self._binaries = installed()
        self._log = self._temp = Path()

    @property
    def socket(self) -> Path:
        """Its socket, the only address it listens on unless a setting adds one."""
        return self.home / "socket"

    def version(self) -> str:
        """Version reported by the server."""
        return self._binaries.version

    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Make a data directory, fill it and stop the server."""
        self.data = self.own_directory(self.home, _FOLDER)
        self._log = self._temp = self.data
        fixed = ["--no-defaults", f"--auth-root-socket-user={caller()}", "--skip-test-db"]
        own = {name: value for name, value in self.settings.items() if name.startswith("innodb")}
        options = [f"--{name}={value}" for name, value in {"datadir": str(self.data), **own}.items()]
        self.run([self._binaries.installer, *fixed, *options])
        self.start()
        try:
            self._make_client()
            prepare()
        finally:
            self.stop()
        copy_files(self.data, folder / _FOLDER)
        shutil.rmtree(self.data)

    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy the data directory, and move the redo log to its own."""
        root = self.own_directory(places[Role.DATA], "cluster")
        copy_files(template / _FOLDER, root / _FOLDER)
        self.data = root / _FOLDER
        self._log = self.own_directory(places[Role.LOG], "redo")
        self._temp = self.own_directory(places[Role.TEMP], "tmp")
        copy_files(self.data / _LOG, self._log / _LOG)
        (self.data / _LOG).unlink()
        self._link_selected(places)
        self.places = dict(places)

    def start(self) -> None:
        """Start it."""
        settings = {
            "datadir": str(self.data),
            "innodb-log-group-home-dir": str(self._log),
            "tmpdir": str(self._temp),
            "socket": str(self.socket),
            "pid-file": str(self.home / "pid"),
            **_FIXED,
            **self.settings,
            "secure-file-priv": str(self.home),
        }
        options = [f"--{key}={value}" for key, value in settings.items()]
        self.launch(
            [self._binaries.server, "--no-defaults", *options, *self._binary_log, "--skip-networking"]
        )
        self._connect().close()

    def target(self) -> Target | None:
        """The server, found like ``tierwise record --engine mariadb`` does."""
        return of_pid(self.pid)

    def make_account(self, name: str, password: str) -> None:
        """Make an account with all rights in the clients' database and none elsewhere."""
        self._execute(
            f"CREATE OR REPLACE USER {name}@localhost IDENTIFIED BY '{password}'",
            f"GRANT ALL ON {DATABASE}.* TO {name}@localhost",
        )

    def _link_selected(self, places: Mapping[Role, Path]) -> None:
        """Move the files of the selected tables to a place of their own, and link them."""
        for relation in self.selected:
            schema, table = relation.removeprefix("table:").split(".")
            file = self.data / schema / f"{table}.ibd"
            folder = places[Role.SELECTED] / schema
            if not folder.exists():
                self.own_directory(places[Role.SELECTED], schema)
            copy_files(file, folder / file.name)
            file.unlink()
            file.symlink_to(folder / file.name)

    def _make_client(self) -> None:
        """Make the clients' database and account, whose files are those of ``secure-file-priv`` alone."""
        self._execute(f"CREATE DATABASE {DATABASE}")
        self.make_account(CLIENT, "")
        self._execute(f"GRANT FILE ON *.* TO {CLIENT}@localhost")

    def _execute(self, *statements: str) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)

    def _connect(self) -> pymysql.Connection[Any]:
        """A session of root, without a schema; only the account that tierwise runs as can open it."""
        until_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until_s:
            if self._process is None or not self._process.running:
                raise self.error("did not start")
            with contextlib.suppress(pymysql.OperationalError):
                return pymysql.connect(unix_socket=str(self.socket), user=caller(), autocommit=True)
            time.sleep(0.02)
        raise self.error(f"took no connection within {START_TIMEOUT_S:g} s")

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGTERM
