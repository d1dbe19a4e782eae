"""The system's MariaDB with InnoDB, on directories that a placement chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from tierwise.lab.engines.commit_load import SQL_TABLES
from tierwise.lab.engines.mariadb.binaries import MariadbBinaries
from tierwise.lab.engines.mariadb.counters import MariadbWaitProbe, read_counters
from tierwise.lab.engines.mariadb.file_roles import MariadbFiles, place_table_in_directory
from tierwise.lab.engines.mariadb.server import (
    MariadbServer,
    default_settings_for,
    settings_for_limits,
    settings_for_places,
)
from tierwise.lab.engines.server_engine import ServerEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters
from tierwise.results.wait_sampling import WaitSampler

_ROOT_BY_PASSWORD = ["--auth-root-authentication-method=normal"]
_DURABILITY_OFF = {"innodb_flush_log_at_trx_commit": "0"}
"""For making the system tables; the caller writes them out afterwards."""


class MariadbEngine(ServerEngine[MariadbServer]):
    """A MariaDB server. The load's sessions have privileges only on their own schema."""

    roles: ClassVar = frozenset({Role.LOG, Role.UNDO, Role.SYSTEM, Role.DATA, Role.TEMP, Role.ARCHIVE})
    dialect: ClassVar = "mysql"
    driver: ClassVar = "mariadb"
    checkpoint_statement: ClassVar = "SET GLOBAL innodb_log_checkpoint_now = ON"  # a sharp one
    unsupported: ClassVar = {
        Role.INDEX: "index pages lie in the file of their table",
        Role.DOUBLEWRITE: "the doublewrite buffer lies in the system's tablespace, ibdata1",
        "parallelism": "one thread works on a statement: InnoDB has no parallel query",
        "temp_bytes": "the server counts temporary tables and files, not their bytes",
    }
    inside: ClassVar = {Role.INDEX: Role.DATA, Role.DOUBLEWRITE: Role.SYSTEM}

    def __init__(
        self, name: str, installation: MariadbBinaries, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, installation, settings)
        self._binaries = installation
        self._files = MariadbFiles()
        self._temp: Path | None = None

    def init(self, places: Mapping[Role, Path]) -> None:
        """Check the settings, run mariadb-install-db, then make the load's schema and account."""
        self.require_placeable(places)
        self.check_settings()
        super().init(places)

    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Give each new data table a DATA DIRECTORY; an index goes with its table."""
        session = self._known_process().client
        for role, sql in statements:
            if role not in (Role.DATA, Role.INDEX, Role.SYSTEM):
                raise TierwiseError(f"a schema statement has the role {role}", "use data, index or system")
            place = self.directories.get(Role.DATA) if role is not Role.SYSTEM else None
            self._files.note(role, sql)
            session.query(sql if place is None else place_table_in_directory(sql, place))

    def check(self) -> IntegrityCheck:
        """CHECK TABLE of the load's tables."""
        tables = ", ".join(SQL_TABLES)
        rows = self._known_process().client.query(f"CHECK TABLE {tables} EXTENDED")
        problems = [f"{table}: {text}" for table, _, kind, text in rows if (kind, text) != ("status", "OK")]
        return IntegrityCheck(name="CHECK TABLE EXTENDED", problems=problems)

    def role_of(self, path: Path) -> Role | None:
        """Role by the file's name and the statement that made its table, else by the file's directory."""
        role = self._files.role_of(path)
        if role is None and self._temp in path.parents:
            return Role.TEMP
        return Role.SYSTEM if role is None and self.directories.get(Role.SYSTEM) in path.parents else role

    def counters(self) -> Counters:
        """Server-wide counters, connected sessions included."""
        server = self._known_process()
        return read_counters(server.query, server.cpu_s())

    def settings(self) -> dict[str, str]:
        """SHOW GLOBAL VARIABLES."""
        return dict(self._known_process().query("SHOW GLOBAL VARIABLES"))

    def sampler(self) -> WaitSampler:
        """Samples the threads of the load's sessions."""
        server = self._known_process()
        own = int(server.client.connection.thread_id())
        return WaitSampler(MariadbWaitProbe(self.processes()[0], self.role_of, server.connect, own))

    def _make_process(self) -> MariadbServer:
        return MariadbServer(self.name, self._binaries, self._user)

    def _make_database(self) -> None:
        process = self._known_process()
        self._temp = self.directories.get(Role.TEMP) or self._made.make_beside(Role.SYSTEM, "temp")
        ours = {name: value for name, value in self._all_settings().items() if name != "log_bin"}
        process.install(
            self.directories[Role.SYSTEM], ours | _DURABILITY_OFF, _ROOT_BY_PASSWORD, self._timeout_s
        )
        self.start()
        process.make_client()
        self.stop()

    def _all_settings(self) -> dict[str, str]:
        assert self._temp is not None, "made with the database"
        return {
            **settings_for_limits(self.name, self.limits),
            **default_settings_for(self.directories),
            **self._given,
            **settings_for_places(self.directories, self._temp, self._known_process().socket),
        }
