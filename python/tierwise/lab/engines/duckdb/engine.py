"""DuckDB as an engine: a columnar database file for analytic queries, loaded from tables as files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tierwise import _core
from tierwise.host.users import give_ownership
from tierwise.lab.engines.base import ConnectedClients
from tierwise.lab.engines.embedded.embedded_engine import EmbeddedEngine
from tierwise.model.placement import Role

_ROWS = 1_000_000


def write_table_files(source: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    """Rows of a table in files of about a million: lines of fields that ``|`` separates, in order.

    Args:
        source: from a program's table: ``table``, ``scale_factor``, and ``refresh_sets`` for refresh data.
        directory: holds one of the files at a time; the next one replaces it.
    """
    arguments = source["table"], source["scale_factor"]
    refresh_sets = source.get("refresh_sets")
    parts = -(-_core.tpch_rows(*arguments, refresh_sets) // _ROWS)
    file = directory / f"{source['table']}.tbl"
    for part in range(1, parts + 1):
        # The directory is another user's, so a file or link that is there already is not written to.
        file.unlink(missing_ok=True)
        with file.open("xb") as made:
            _core.write_tpch(*arguments, part, parts, f"/proc/self/fd/{made.fileno()}", refresh_sets)
        yield file
    file.unlink()


_ROLES = (
    (re.compile(r"database\.duckdb(\.wal.*|\.tmp)?"), Role.DATA),
    (re.compile(r"duckdb_temp_.*"), Role.TEMP),
)
_ONE_FILE = "everything is in the blocks of one file"
_NO_COUNT = (
    "its profiler leaves out what threads other than the client's read and spill, and there are no totals"
)


class DuckDbEngine(EmbeddedEngine):
    """DuckDB in a process of its own."""

    roles: ClassVar = frozenset({Role.DATA, Role.TEMP, Role.SYSTEM})
    dialect: ClassVar = "duckdb"
    adapter: ClassVar = "tierwise.lab.engines.duckdb.adapter:DuckDbAdapter"
    package: ClassVar = "duckdb"
    inside: ClassVar = {Role.LOG: Role.DATA, Role.INDEX: Role.DATA, Role.SYSTEM: Role.DATA}
    helped: ClassVar = True
    least_memory_bytes: ClassVar = 96 << 20
    unsupported: ClassVar = {
        "log": "the log is made beside the database's file, and no setting moves it",
        "index": _ONE_FILE,
        "undo": "old versions of rows are kept in memory",
        "doublewrite": "a block is never written in place, so none can tear",
        "archive": "the log is deleted once it has been written to the database's file",
        "doublewrite_bytes": "a block is never written in place, so none can tear",
        "log_bytes": "the log is not counted, and its file is deleted at every checkpoint",
        "logical_reads": _NO_COUNT,
        "physical_reads": _NO_COUNT,
        "pages_read": _NO_COUNT,
        "physical_writes": _NO_COUNT,
        "pages_written": _NO_COUNT,
        "temp_bytes": _NO_COUNT,
    }

    def role_of(self, path: Path) -> Role | None:
        """Role by the file's name."""
        return next((role for pattern, role in _ROLES if pattern.fullmatch(path.name)), None)

    def waits_as(self, path: Path) -> Role | None:
        """Role for waits: log for the log file, although it has the data's role, beside which it must lie."""
        return Role.LOG if path.name.endswith(".wal") else self.role_of(path)

    def load_tables(self, program_json: str, seed: int) -> int:
        """Write tables with a text source to files and copy them in; the worker fills the other tables."""
        program = json.loads(program_json)
        as_text = [table for table in program["tables"] if table.get("source")]
        program["tables"] = [table for table in program["tables"] if not table.get("source")]
        rows = 0
        for table in as_text:
            for file in write_table_files(table["source"], self._known_process().home):
                give_ownership(file, self._user)
                rows += self.load_files(table["name"], [file])
        return rows + (super().load_tables(json.dumps(program), seed) if program["tables"] else 0)

    def clients(self, program_json: str, clients: int, seed: int) -> ConnectedClients:
        """Clients in the worker; first frees the memory that the load phase kept."""
        _core.release_tpch_text()
        return super().clients(program_json, clients, seed)

    def load_files(self, table: str, paths: Sequence[Path]) -> int:
        """Fill a table from files by COPY; gives the number of rows.

        Args:
            paths: Parquet files, or lines of fields that ``|`` separates, without header and quotes.
        """
        return int(self._call("load_files", table=table, paths=[str(path.absolute()) for path in paths]))
