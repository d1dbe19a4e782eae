"""Interface of a case's database: places, and the target of a recording."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tierwise.capture.sql_session import Dsn
from tierwise.capture.target import RecordingTarget, target_of_process
from tierwise.host import mounts, processes, programs
from tierwise.host.python_process import ProcessCommand
from tierwise.host.users import account_ids, require_reachable, unreachable_part
from tierwise.lab.engines import engine_documentation
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.postgres.binaries import SYSTEM_ROOT
from tierwise.lab.engines.process_engine import EngineProcess
from tierwise.lab.engines.server_engine import ServerInstallation, ServerProcess
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import make_new_folder
from tierwise.model.placement import Role

DATABASE = "bench"
"""Name of the clients' database in a server."""
CLIENT = "bench"
"""Account of the clients in a server, with rights in that database alone; only tierwise is the superuser."""
BUFFER_SETTINGS = {"postgres": "shared_buffers", "mariadb": "innodb-buffer-pool-size"}
"""Server -> the setting with the size of its own buffer."""
_START_TIMEOUT_S = 60.0
INSTALL_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 120.0

_ROLES: Mapping[str, frozenset[Role]] = {
    "postgres": frozenset({Role.LOG, Role.DATA, Role.TEMP}),
    "mariadb": frozenset({Role.LOG, Role.DATA, Role.TEMP}),
    "rocksdb": frozenset({Role.LOG, Role.DATA}),
    "duckdb": frozenset({Role.DATA, Role.TEMP}),
    "sqlite": frozenset({Role.DATA}),
}
"""Roles that can be placed separately; all others are with the data."""


def placeable_roles(server: str | None, engine: str) -> frozenset[Role]:
    """Roles that a server, or a library if ``server`` is ``None``, can place separately."""
    return _ROLES[server or engine]


def missing_package(server: str | None) -> str | None:
    """The missing package of a server, by Debian's name; ``None`` if nothing is missing."""
    if server == "postgres" and not list(SYSTEM_ROOT.glob("*/bin/postgres")):
        return "PostgreSQL is not installed (Debian: postgresql-15)"
    if server == "mariadb" and programs.find_program("mariadbd") is None:
        return "MariaDB is not installed (Debian: mariadb-server-core, mariadb-client-core)"
    return None


class CaseDatabase(EngineProcess):
    """The database of a case's client. Files of a role are in the role's place, all others with the data."""

    engine: str
    settings: Mapping[str, str] = {}
    """Of the engine."""
    places: Mapping[Role, Path] = {}
    selected: Sequence[str] = ()
    """Tables and indexes in a place of their own, such as ``table:public.orders``."""

    @property
    def outer(self) -> Path:
        """The caller's directory around :attr:`home`: logs, programs, and input, which the user may read."""
        return self._home.outer

    def start_program(
        self, name: str, program: Sequence[str | Path] | ProcessCommand, log: Path
    ) -> processes.Process:
        """Start a program as the database's user, with its output in a new file."""
        log.unlink(missing_ok=True)
        return programs.start(f"validate-{name}", program, home=self._home, log=log)

    def input_file(self, name: str, text: str) -> Path:
        """Write a file that the user may read and only the caller may change."""
        path = self.outer / name
        path.write_text(text, "utf-8")
        path.chmod(0o644)
        return path

    def reachable(self, program: Path) -> Path:
        """A program or a directory of programs, or a copy if the user may not enter its directory."""
        if unreachable_part(program, self.user) is None:
            return program
        copied = self.outer / program.name
        if not copied.exists():
            programs.copy_program(program, copied)
        return copied

    def own_directory(self, parent: Path, name: str) -> Path:
        """Make a directory that only the user may enter."""
        require_reachable(self.engine, parent, self.user)
        made = parent / name
        make_new_folder(
            made, owner=account_ids(self.user), in_foreign=True
        )  # the parent may be the user's home
        return made

    @abstractmethod
    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Create a database in ``folder``, fill it with ``prepare``, and shut it down."""

    @abstractmethod
    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy a stopped database to the storage under test."""

    def start(self) -> None:
        """Start the server; a library needs no start."""

    def stop(self) -> None:
        """Shut it down, if it is a server. No error if it is stopped."""

    def target(self) -> RecordingTarget | None:
        """Target of a recording; ``None`` for a library, which runs in its client's process."""
        return None

    def dsn(self) -> Dsn | None:
        """The address at which a recording asks for the names of tables; ``None`` if it needs none."""
        return None

    def version(self) -> str:
        """Version of the programs."""
        return ""

    def remove(self) -> None:
        """Stop, and delete the home's content."""
        self.stop()
        super().remove()


class CaseServer(CaseDatabase, ServerProcess):
    """A server process, in directories that no other user may read."""

    data = Path()
    studied: ClassVar[type[Engine]]
    """The same server as an engine of studies, whose settings it takes."""

    @staticmethod
    @abstractmethod
    def installation() -> ServerInstallation:
        """Its programs on this machine."""

    @classmethod
    def checked(cls, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings, if a study may give them."""
        return engine_documentation.checked_settings(cls.engine, settings, cls.studied.allowed_settings())

    @classmethod
    def check_settings(cls, settings: Mapping[str, str]) -> None:
        """Ask the server's own parser, before anything is made; refuse what a study may not give."""
        cls.installation().check(cls.engine, cls.checked(settings))

    def version(self) -> str:
        """Version reported by the server."""
        return self.installation().version

    @abstractmethod
    def make_empty(self) -> None:
        """Make an empty database in :attr:`data`, which is there and empty too."""

    @abstractmethod
    def finish_template(self) -> None:
        """Complete a filled database, before it is stopped and kept."""

    @abstractmethod
    def spread(self, places: Mapping[Role, Path]) -> None:
        """Move the files of other roles than the data's from :attr:`data` to their places."""

    def make(self, prepare: Callable[[], None], folder: Path) -> None:
        """Make a database, fill it, stop it, and keep its files."""
        self.data = self.own_directory(self.home, self.engine)
        self.make_empty()
        self.start()
        try:
            self.make_client()
            prepare()
            self.finish_template()
        finally:
            self.stop()
        copy_files(self.data, folder / self.engine)
        shutil.rmtree(self.data)

    def place(self, template: Path, places: Mapping[Role, Path]) -> None:
        """Copy all files to the data's place, then those of other roles to theirs."""
        self.data = self.own_directory(places[Role.DATA], "cluster") / self.engine
        copy_files(template / self.engine, self.data)
        self.spread(places)
        self.places = dict(places)

    def target(self) -> RecordingTarget | None:
        """The server, found like ``tierwise record`` does."""
        if self.pid is None:
            raise self.error("does not run")
        return target_of_process(self.pid)

    def run_with(self, settings: Mapping[str, str]) -> None:
        """Start it; no session of tierwise's own is left open while a client is measured."""
        self.serve(self.data, settings, _START_TIMEOUT_S)
        self._disconnect()

    def query(self, sql: str) -> list[Any]:
        """Run one statement as the superuser, in a session of its own."""
        with contextlib.closing(self.session(self.connect)) as session:
            return session.query(sql)

    def stop(self) -> None:
        """Shut it down cleanly."""
        self.end(_STOP_TIMEOUT_S)


def calling_account() -> str:
    """Name of the account that tierwise runs as, the only one that may be a server's superuser."""
    return pwd.getpwuid(os.geteuid()).pw_name


def copy_files(source: Path, destination: Path) -> None:
    """Copy a directory with owners, modes and times."""
    try:
        mounts.run_system_command("cp", "-a", "--", str(source), str(destination))
    except TierwiseError as error:
        raise TierwiseError(f"copying {source}: {error.message[-200:]}", "make room for it") from error
