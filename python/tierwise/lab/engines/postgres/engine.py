"""PostgreSQL, embedded or the system's, on directories that a placement chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tierwise.lab.engines.engine_documentation import SalvageStep
from tierwise.lab.engines.postgres.binaries import PostgresBinaries, major_version_of
from tierwise.lab.engines.postgres.counters import PostgresWaitProbe, read_counters
from tierwise.lab.engines.postgres.file_roles import PostgresFiles
from tierwise.lab.engines.postgres.server import (
    CHECKS,
    CLIENT,
    MEMBER_SETTINGS,
    PORT,
    PostgresServer,
    PostgresSettings,
    SynchronousWalReceiver,
    settings_for_archive,
    settings_for_limits,
)
from tierwise.lab.engines.server_engine import ServerEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters
from tierwise.results.wait_sampling import WaitSampler

_SETTINGS = """
    SELECT name, coalesce(pg_catalog.current_setting(name, true), '') FROM pg_catalog.pg_settings
    WHERE name NOT IN ('application_name', 'search_path')
"""
_LASTING = "relation.relpersistence = 'p'"
_HEAP = f"""
    SELECT relation.relname || ', block ' || problem.blkno || ': ' || problem.msg
    FROM pg_catalog.pg_class AS relation, LATERAL {CHECKS}.verify_heapam(relation.oid::regclass) AS problem
    WHERE relation.relkind IN ('r', 'm', 't') AND {_LASTING}
"""
_INDEXES = f"""
    SELECT {CHECKS}.bt_index_check(relation.oid, heapallindexed => true)
    FROM pg_catalog.pg_class AS relation JOIN pg_catalog.pg_am AS method ON method.oid = relation.relam
    WHERE relation.relkind = 'i' AND method.amname = 'btree' AND {_LASTING}
"""
"""The statements of pg_amcheck --heapallindexed, without a process."""
_FULL_READ = "SELECT (SELECT count(body) FROM item), (SELECT count(number) FROM done)"
_TABLESPACES = {Role.DATA: "tierwise_data", Role.INDEX: "tierwise_index", Role.TEMP: "tierwise_temp"}


class PostgresEngine(ServerEngine[PostgresServer]):
    """A PostgreSQL server. The load's sessions may do anything in their database, and nothing elsewhere."""

    roles: ClassVar = frozenset({Role.LOG, Role.DATA, Role.INDEX, Role.TEMP, Role.SYSTEM, Role.ARCHIVE})
    dialect: ClassVar = "postgres"
    driver: ClassVar = "postgres"
    checkpoint_statement: ClassVar = "CHECKPOINT"
    unsupported: ClassVar = {
        Role.UNDO: "old versions of a row stay in its table: there is no undo",
        Role.DOUBLEWRITE: "whole pages are saved in the log itself, as full-page images",
    }
    inside: ClassVar = {Role.UNDO: Role.DATA, Role.DOUBLEWRITE: Role.LOG}

    def __init__(
        self, name: str, installation: PostgresBinaries, settings: Mapping[str, str] | None = None
    ) -> None:
        """Prepare; ``settings`` are as in postgresql.conf, and tierwise's own (``postgres/server.py``)."""
        super().__init__(name, installation, settings)
        self._binaries = installation
        self._own = PostgresSettings.split(name, self._given)
        self._given = dict(self._own.server)
        self._member: SynchronousWalReceiver | None = None
        self._files = PostgresFiles(self._query_as_client)

    def start(self) -> None:
        """Start postgres, then the receiver of the second log member, if there is one."""
        if not self.running:
            super().start()
            if self._member is not None:
                self._member.start(self._timeout_s)

    def start_salvaged(self, step: SalvageStep) -> None:
        """Run the step's program on the data directory, then start."""
        server = self._known_process()
        if step.program:
            arguments: list[str | Path] = [*step.program[1:], "-D", self.directories[Role.SYSTEM]]
            server.run(server.bin / step.program[0], arguments, self._timeout_s)
        super().start_salvaged(step)

    def stop(self) -> None:
        """Fast shutdown: ends sessions and writes a checkpoint."""
        super().stop()
        if self._member is not None:
            self._member.end(self._timeout_s)

    def crash_stop(self) -> None:
        """Immediate shutdown: no checkpoint."""
        super().crash_stop()
        if self._member is not None:
            self._member.end()

    def close(self) -> None:
        """Kill the server if it runs and delete its directories."""
        if self._member is not None:
            self._member.end()
            self._member = None
        super().close()

    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Set default_tablespace to the role's tablespace before each statement."""
        session = self._known_process().client
        for role, sql in statements:
            if role not in (Role.DATA, Role.INDEX, Role.SYSTEM):
                raise TierwiseError(f"a schema statement has the role {role}", "use data, index or system")
            session.query(f"SET default_tablespace = '{self._tablespace(role)}'")
            with self._files.making(role):
                session.query(sql)
        session.query("RESET default_tablespace")
        self._files.refresh()

    def dsn(self) -> str:
        """Keywords and values of the load's sessions, as libpq and tokio-postgres read them."""
        return self._known_process().address

    def check(self) -> IntegrityCheck:
        """What pg_amcheck runs, on every table and index; without amcheck, a read that verifies checksums."""
        query = self._query_as_client
        amcheck = query("SELECT FROM pg_catalog.pg_extension WHERE extname = 'amcheck'")
        name = f"{'amcheck' if amcheck else 'full read'}, data checksums {query('SHOW data_checksums')[0][0]}"
        try:
            found = query(_HEAP) if amcheck else []
            query(_INDEXES if amcheck else _FULL_READ)
        except TierwiseError as error:
            return IntegrityCheck(name=name, problems=[error.message])
        return IntegrityCheck(name=name, problems=[str(problem) for (problem,) in found])

    def role_of(self, path: Path) -> Role | None:
        """Role by the file's name and the statement that made its relation, else the data directory's."""
        role = self._files.role_of(path, up=self.running)
        if role is not None or self._files.is_relation(path):
            return role
        return Role.SYSTEM if self.directories.get(Role.SYSTEM) in path.parents else None

    def processes(self) -> list[int]:
        """The postmaster, its children, and the receiver of a second log member."""
        return [*super().processes(), *(self._member.pids if self._member is not None else [])]

    def counters(self) -> Counters:
        """Server-wide counters; connected sessions may report up to a second late."""
        server = self._known_process()
        return read_counters(server.control.ask, major_version_of(self._version), server.cpu_s())

    def settings(self) -> dict[str, str]:
        """All of pg_settings, each as SHOW prints it, but for what the asking session has of its own."""
        return dict(self._known_process().query(_SETTINGS))

    def sampler(self) -> WaitSampler:
        """Samples pg_stat_activity."""
        return WaitSampler(PostgresWaitProbe(self._known_process().superuser_dsn))

    def failure(self) -> str | None:
        """The last FATAL, PANIC or disk-full line, if any."""
        if self._member is not None and self._member.lost:
            return "the second member of the log is lost"
        return super().failure()

    def _query_as_client(self, sql: str) -> list[Any]:
        return self._known_process().client.query(sql)

    def _make_process(self) -> PostgresServer:
        return PostgresServer(self.name, self._binaries, self._user)

    def _make_database(self) -> None:
        server, directories = self._known_process(), self.directories
        arguments: list[str | Path] = ["--no-sync", "--locale", "C", "--encoding", "UTF8"]
        if Role.LOG in directories:
            arguments += ["--waldir", directories[Role.LOG]]
        if self._own.segment_mib is not None:
            arguments += ["--wal-segsize", str(self._own.segment_mib)]
        server.initdb(directories[Role.SYSTEM], arguments, self._timeout_s)
        self.start()
        server.make_client()
        for role in sorted(_TABLESPACES.keys() & directories.keys()):
            location = str(directories[role]).replace("'", "''")
            server.query(f"CREATE TABLESPACE {_TABLESPACES[role]} LOCATION '{location}'")
            server.query(f"GRANT CREATE ON TABLESPACE {_TABLESPACES[role]} TO {CLIENT}")
        self.stop()
        if self._own.log_members == 2:
            self._member = SynchronousWalReceiver(server, self._made.make_beside(Role.LOG, "log-member"))

    def _tablespace(self, role: Role) -> str:
        """Name of the role's tablespace; empty, which means the data directory, if it has none."""
        return _TABLESPACES.get(role, "") if role in self.directories else ""

    def _all_settings(self) -> dict[str, str]:
        server = self._known_process()
        ours = {
            "dynamic_shared_memory_type": "mmap",
            "listen_addresses": "",
            "unix_socket_directories": str(server.home),
            "unix_socket_permissions": "0700",
            "port": str(PORT),
            "temp_tablespaces": self._tablespace(Role.TEMP),
            "default_tablespace": self._tablespace(Role.DATA),
        }
        if Role.ARCHIVE in self.directories:
            ours |= settings_for_archive(self.directories[Role.ARCHIVE])
        if self._member is not None:
            ours |= MEMBER_SETTINGS
        return {**settings_for_limits(self.limits), **self._given, **ours}
