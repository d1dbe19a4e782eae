"""RocksDB in the worker's process: opens it with separate roles, reads its counters."""

from __future__ import annotations

import pickle  # noqa: F401  (rocksdict imports it when a database is opened, and the worker may then not read it)
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rocksdict import DBPath, Options, Rdict, WriteBatch, WriteOptions

from tierwise.engines.commits import CommitSession
from tierwise.engines.embedded.adapter import Opening
from tierwise.engines.objects import encoding
from tierwise.engines.objects.client import ObjectClient
from tierwise.engines.objects.operations import Kind, parse_kind
from tierwise.engines.objects.transaction import Locks, Pair
from tierwise.engines.rocksdb.commits import RocksCommitSession, run_check
from tierwise.engines.rocksdb.files import NAMED_OPTIONS, has_options, read_options
from tierwise.engines.rocksdb.group_commit import GroupCommit
from tierwise.engines.rocksdb.options import CACHE, REPAIR, SYNC, NamedOptions, wants_sync
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.faults import IntegrityCheck
from tierwise.results.measurements import Counters, SpaceUse

_NO_LIMIT = 1 << 50
_TICKER = re.compile(r"(?m)^rocksdb\.(\S+) .*?COUNT : (\d+)")


class RocksAdapter:
    """One database; all sessions share it as an object store."""

    def __init__(self) -> None:
        """Prepare; nothing is open yet."""
        self.kinds: dict[str, Kind] = {}
        self.locks = Locks()
        self.special: Mapping[str, Callable[..., object]] = {}
        self._unsynced = WriteOptions()

    def open(self, opening: Opening) -> None:
        """Make the database with RocksDB's defaults, or repair it, then open it with the settings."""
        system = opening.directory(Role.SYSTEM)
        self._system = system
        if opening.settings.get(REPAIR) == "on":
            Rdict.repair(str(system), _placed(Options(raw_mode=True), opening))
        if not (system / "CURRENT").exists() or not has_options(system):
            Rdict(str(system), _placed(Options(raw_mode=True), opening)).close()
        self._sync = wants_sync(opening.settings)
        given = {name: value for name, value in opening.settings.items() if name not in (SYNC, REPAIR)}
        named = NamedOptions(system, {**_sizes(opening), **given})
        self._cache_bytes = named.cache_bytes
        loaded, families = named.load(opening.home / NAMED_OPTIONS)
        self._options = _placed(loaded, opening)
        self._database = Rdict(str(system), self._options, column_families=families)
        self._group = GroupCommit(lambda: self._database.flush_wal(True))
        declared = [value.decode() for _, value in self.scan(encoding.kinds_prefix())]
        self.kinds = {kind.name: kind for kind in map(parse_kind, declared, range(len(declared)))}

    def driver(self) -> tuple[str, object]:
        """This adapter, which connects the clients."""
        return "python", self

    def connect(self) -> ObjectClient:
        """Open a session."""
        return ObjectClient(self)

    def execute(self, _role: Role, statement: str) -> None:
        """Declare a kind of object; its indexes lie among the data, for every role."""
        kind = parse_kind(statement, len(self.kinds))
        if kind.name in self.kinds:
            raise TierwiseError(f"there are objects of the kind {kind.name} already", "choose another name")
        self.write({encoding.kind_key(kind.number, kind.name): statement.encode()})
        self.kinds[kind.name] = kind

    def checkpoint(self) -> None:
        """Flush the memtables."""
        self._database.flush()

    def counters(self) -> Counters:
        """RocksDB's own counters, in blocks where other engines count pages."""
        counted = {name: int(count) for name, count in _TICKER.findall(self._options.get_statistics() or "")}
        page_bytes = int(read_options(self._system)["block_size"])
        misses = counted["block.cache.miss"]
        written = counted["flush.write.bytes"] + counted["compact.write.bytes"]
        return Counters(
            log_bytes=counted["wal.bytes"],
            logical_reads=counted["block.cache.hit"] + misses,
            physical_reads=counted["sst.read.micros"],
            pages_read=misses,
            pages_written=written // page_bytes,
            page_bytes=page_bytes,
            commits=counted["write.self"] + counted["write.other"],
        )

    def space(self) -> SpaceUse | None:
        """Space of the table files; indexes and objects are not distinguished."""
        reserved = self._database.property_int_value("rocksdb.total-sst-files-size") or 0
        live = self._database.property_int_value("rocksdb.estimate-live-data-size") or 0
        return SpaceUse(reserved_bytes=reserved, unused_bytes=reserved - min(live, reserved))

    def settings(self) -> dict[str, str]:
        """Every option and the version of RocksDB, from its options file."""
        return {
            **read_options(self._system),
            CACHE: str(self._cache_bytes),
            SYNC: "on" if self._sync else "off",
        }

    def make_commit_tables(self) -> None:
        """Nothing to make: keys need no schema."""

    def commit_session(self) -> CommitSession:
        """A session that writes a batch for each commit."""
        return RocksCommitSession(self)

    def check(self) -> IntegrityCheck:
        """Read every pair, which verifies the checksums of blocks."""
        return run_check(self)

    def close(self) -> None:
        """Close; the next opening replays the log."""
        self._database.flush()
        self._database.close()

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or ``None``."""
        value: bytes | None = self._database.get(key)
        return value

    def scan(self, prefix: bytes) -> Iterator[Pair]:
        """All pairs whose key has the prefix, sorted, as of the first one."""
        pairs: Iterator[Any] = self._database.items(from_key=prefix)
        for key, value in pairs:
            if not key.startswith(prefix):
                return
            yield key, value

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Write one batch, then wait for the log, unless the setting ``sync`` is off.

        The library holds the interpreter's lock while it writes and releases it only in a separate flush.
        With ``sync`` in the write, two clients could never share a flush, as they do in RocksDB itself.
        """
        batch = WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        self._database.write(batch, self._unsynced)
        if self._sync:
            self._group.wait()


def _placed(options: Options, opening: Opening) -> Options:
    options.create_if_missing(True)
    options.set_wal_dir(str(opening.directory(Role.LOG)))
    options.set_db_paths([DBPath(str(opening.directory(Role.DATA)), _NO_LIMIT)])
    options.set_db_log_dir(str(opening.home))
    options.enable_statistics()
    return options


def _sizes(opening: Opening) -> dict[str, str]:
    """Half of the memory for the block cache, a quarter for memtables."""
    memory_bytes = opening.limits.memory_bytes
    if memory_bytes is None:
        return {}
    return {CACHE: str(memory_bytes // 2), "db_write_buffer_size": str(memory_bytes // 4)}
