"""RocksDB as an engine without SQL: an object store with separately placed log and tables."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tierwise.lab.engines.embedded.embedded_engine import EmbeddedEngine
from tierwise.lab.engines.rocksdb.file_roles import read_options_file, rocksdb_file_role
from tierwise.model.placement import Role


class RocksEngine(EmbeddedEngine):
    """RocksDB in its own process, through the package ``rocksdict``."""

    roles: ClassVar = frozenset({Role.LOG, Role.DATA, Role.SYSTEM})
    dialect: ClassVar = "objects"
    adapter: ClassVar = "tierwise.lab.engines.rocksdb.adapter:RocksAdapter"
    package: ClassVar = "rocksdict"
    inside: ClassVar = {Role.INDEX: Role.DATA}
    least_memory_bytes: ClassVar = 48 << 20
    unsupported: ClassVar = {
        "index": "entries of indexes are keys among the objects, in the same table files",
        "undo": "a transaction is kept in memory until it commits, so there is nothing to undo",
        "temp": "nothing is sorted or joined on disk",
        "doublewrite": "a table file is written once and never in place, so no page can tear",
        "archive": "logs are deleted, or archived within the log's own directory",
        "doublewrite_bytes": "a table file is written once and never in place, so no page can tear",
        "physical_writes": "bytes of table files are counted, not the requests that write them",
        "temp_bytes": "nothing is sorted or joined on disk",
        "parallelism": "an operation runs on the thread of its client",
        "concurrent_reads": "rocksdict keeps the interpreter's lock while it reads: reads come one at a time",
        "isolation": "changes of an object wait for one another; reads see what is written last",
    }

    def role_of(self, path: Path) -> Role | None:
        """Role by the file's name."""
        return rocksdb_file_role(path)

    def version(self) -> str:
        """Version of RocksDB, known once there is a database; until then the version of the package."""
        system = self.directories.get(Role.SYSTEM)
        return super().version() if system is None else read_options_file(system)["rocksdb_version"]
