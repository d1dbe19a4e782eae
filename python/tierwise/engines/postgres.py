"""PostgreSQL, embedded or the system's, on directories that a placement chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from tierwise import _core
from tierwise.counters import Counters
from tierwise.engines.base import Clients, Engine
from tierwise.engines.postgres_binaries import Binaries
from tierwise.engines.postgres_server import SUPERUSER, PostgresServer
from tierwise.engines.postgres_waits import PostgresWaitProbe
from tierwise.errors import TierwiseError
from tierwise.host import ledger, page_cache, users
from tierwise.roles import Role
from tierwise.wait_sampling import WaitSampler

_TABLESPACES = {Role.DATA: "tierwise_data", Role.INDEX: "tierwise_index", Role.TEMP: "tierwise_temp"}
_OURS = {
    "data_directory",
    "dynamic_shared_memory_type",
    "listen_addresses",
    "port",
    "temp_tablespaces",
    "unix_socket_directories",
}
_COUNTERS = """
    SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, sum(blks_hit)::bigint, sum(blks_read)::bigint
    FROM pg_stat_database
"""


class PostgresEngine(Engine):
    """A PostgreSQL server that is reached over a Unix socket alone.

    Called by root it runs as the user ``postgres``, else ``nobody``; called by a user, as that user.
    """

    roles: ClassVar = frozenset({Role.LOG, Role.DATA, Role.INDEX, Role.TEMP, Role.SYSTEM})
    dialect: ClassVar = "postgres"

    def __init__(
        self,
        name: str,
        binaries: Binaries,
        settings: Mapping[str, str] | None = None,
        *,
        socket_dir: Path | None = None,
        port: int = 5432,
        timeout_s: float = 600,
    ) -> None:
        """Prepare; nothing is made or started yet.

        Args:
            name: the engine's name, for messages and results.
            binaries: the installation to use.
            settings: server settings by name, as in postgresql.conf.
            socket_dir: directory of the socket; one of the engine's own when left out.
            port: number in the socket's file name; no TCP port is opened.
            timeout_s: longest wait for a start with its recovery, and for a stop with its checkpoint.
        """
        self.name = name
        self._binaries = binaries
        self._version = binaries.version
        self._settings = dict(settings or {})
        self._socket = (socket_dir, port)
        self._timeout_s = timeout_s
        self._user = users.server_user(["postgres"])
        self._made: dict[Role, ledger.Directory] = {}
        self._server: PostgresServer | None = None
        for reserved in sorted(_OURS & self._settings.keys()):
            raise TierwiseError(f"engine {name}: setting {reserved} belongs to tierwise", "leave it out")

    def init(self, places: Mapping[Role, Path]) -> None:
        """Run initdb, then make the tablespaces."""
        self.require_placeable(places)
        try:
            for role, place in places.items():
                self._make_directory(role, place)
            self._server = PostgresServer(self.name, self._binaries, self._user, socket=self._socket)
            self._initdb(self._server)
            self._make_tablespaces()
        except BaseException:
            self.close()
            raise
        page_cache.write_out(self.directories.values())

    def start(self) -> None:
        """Start postgres and wait until it answers."""
        if not self.running:
            self._known_server().start(self.directories[Role.SYSTEM], self._all_settings(), self._timeout_s)
            self._confine()

    def stop(self) -> None:
        """Fast shutdown: sessions are ended, a checkpoint is written."""
        if self._server is not None:
            self._server.stop(self._timeout_s)

    def crash_stop(self) -> None:
        """Immediate shutdown: no checkpoint."""
        if self._server is not None:
            self._server.crash_stop()

    def restart_cold(self) -> None:
        """Stop, drop the page cache, start."""
        self.stop()
        page_cache.drop(self.directories.values())
        self.start()

    def close(self) -> None:
        """Kill the server if it runs and delete its directories."""
        if self._server is not None:
            self._server.remove()
            self._server = None
        for directory in self._made.values():
            directory.remove()
        self._made.clear()

    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Set default_tablespace to that of the role before each statement."""
        server = self._known_server()
        for role, sql in statements:
            if role not in (Role.DATA, Role.INDEX, Role.SYSTEM):
                raise TierwiseError(f"a schema statement has the role {role}", "use data, index or system")
            server.query(f"SET default_tablespace = '{self._tablespace(role)}'")
            server.query(sql)
        server.query("RESET default_tablespace")

    def checkpoint(self) -> None:
        """CHECKPOINT, then write the kernel's dirty pages too."""
        self._known_server().query("CHECKPOINT")
        page_cache.write_out(self.directories.values())

    def dsn(self) -> str:
        """Keywords and values, as libpq and tokio-postgres read them."""
        return self._known_server().dsn

    def clients(self, program_json: str, clients: int, seed: int) -> Clients:
        """Clients over the Unix socket, on threads of this process."""
        return _core.Clients("postgres", self.dsn(), program_json, clients, seed)

    def load_tables(self, program_json: str, seed: int) -> int:
        """COPY over several connections."""
        return _core.load_tables("postgres", self.dsn(), program_json, seed)

    def role_of(self, path: Path) -> Role | None:
        """By the directory of the placed role that the file is in."""
        return next((role for role, made in self.directories.items() if made in path.parents), None)

    def processes(self) -> list[int]:
        """The postmaster and its children."""
        return [] if self._server is None else self._server.pids()

    def counters(self) -> Counters:
        """Buffer counts of a session that is still connected may be up to a second old."""
        server = self._known_server()
        server.query("SELECT pg_stat_force_next_flush()")
        log_bytes, hits, misses = server.query(_COUNTERS)[0]
        return Counters(
            cpu_s=server.cpu_s(), log_bytes=log_bytes, logical_reads=hits + misses, pages_read=misses
        )

    def settings(self) -> dict[str, str]:
        """All of pg_settings, each as SHOW prints it."""
        rows = self._known_server().query(
            "SELECT name, coalesce(current_setting(name, true), '') FROM pg_settings"
        )
        return dict(rows)

    def version(self) -> str:
        """Such as ``18.6``."""
        return self._version

    def sampler(self) -> WaitSampler:
        """Samples pg_stat_activity."""
        return WaitSampler(PostgresWaitProbe(self.dsn()))

    def failure(self) -> str | None:
        """The last FATAL, PANIC or disk-full line, if any."""
        return None if self._server is None else self._server.failure()

    @property
    def server_pid(self) -> int | None:
        """Pid of the postmaster while it runs."""
        return None if self._server is None else self._server.pid

    @property
    def directories(self) -> Mapping[Role, Path]:
        """One for each placed role."""
        return {role: made.path for role, made in self._made.items()}

    def _known_server(self) -> PostgresServer:
        if self._server is None:
            raise TierwiseError(f"engine {self.name} has no database", "init it first")
        return self._server

    def _make_directory(self, role: Role, place: Path) -> None:
        closed = users.unreachable_part(place, self._user)
        if closed is not None and self._user is not None:
            raise TierwiseError(
                f"{role}: the user {self._user.name} may not enter {closed}", f"chmod o+x {closed}"
            )
        self._made[role] = ledger.directory(f"postgres-{role}", parent=place.absolute(), mode=0o700)
        users.give(self._made[role].path, self._user)

    def _initdb(self, server: PostgresServer) -> None:
        directories = self.directories
        arguments: list[str | Path] = ["-D", directories[Role.SYSTEM], "--no-sync", "--username", SUPERUSER]
        arguments += ["--auth", "trust", "--locale", "C", "--encoding", "UTF8"]
        if Role.LOG in directories:
            arguments += ["--waldir", directories[Role.LOG]]
        server.run("initdb", arguments, self._timeout_s)
        server.adopt(directories[Role.SYSTEM])

    def _make_tablespaces(self) -> None:
        self.start()
        for role in sorted(_TABLESPACES.keys() & self._made.keys()):
            location = str(self._made[role].path).replace("'", "''")
            self._known_server().query(f"CREATE TABLESPACE {_TABLESPACES[role]} LOCATION '{location}'")
        self.stop()

    def _tablespace(self, role: Role) -> str:
        """Name of the role's tablespace; empty, which means the data directory, if it has none."""
        return _TABLESPACES.get(role, "") if role in self._made else ""

    def _all_settings(self) -> dict[str, str]:
        server = self._known_server()
        ours = {
            "dynamic_shared_memory_type": "mmap",
            "listen_addresses": "",
            "unix_socket_directories": str(server.socket_dir),
            "port": str(server.port),
            "temp_tablespaces": self._tablespace(Role.TEMP),
        }
        return {**self._settings, **ours}
