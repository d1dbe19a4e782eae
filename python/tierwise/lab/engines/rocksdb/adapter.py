"""RocksDB in the worker's process: opened with separate roles, its counters, its load of commits."""

from __future__ import annotations

import json
import pickle  # noqa: F401  (rocksdict imports it when a database is opened, and the worker may then not read it)
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocksdict import Cache, DBPath, Options, Rdict, WriteBatch, WriteOptions

from tierwise.lab.engines.commit_load import CommitSession
from tierwise.lab.engines.embedded.embedded_adapter import EmbeddedAdapter, OpenParameters
from tierwise.lab.engines.objects.object_dialect import ObjectKind, parse_kind
from tierwise.lab.engines.objects.object_store import (
    KINDS,
    KeyLocks,
    KeyValueStore,
    ObjectClient,
    Pair,
    kind_key,
)
from tierwise.lab.engines.rocksdb.file_roles import (
    NAMED_OPTIONS,
    has_options_file,
    newest_options_file,
    read_options_file,
)
from tierwise.model.errors import TierwiseError
from tierwise.model.names import did_you_mean
from tierwise.model.placement import Role
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters

CACHE = "block_cache"
"""Size of the block cache in bytes: the only option that RocksDB's file leaves out."""

SYNC = "sync"
"""Whether a commit waits for the flush of the log: an option of each write, in no file."""

REPAIR = "repair"
"""Whether to repair the database before it is opened; only the engine sets it."""

_CACHE_BYTES = 32 << 20
_NOTHING = "nullptr"
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_SIZE = re.compile(r"-?\d+[kmgtKMGT]?", re.ASCII)
"""A whole number as RocksDB reads it, with a power of 1024; it would ignore what else follows."""


def load_options(
    database: Path, changes: Mapping[str, str], scratch: Path
) -> tuple[Options, dict[str, Options], int]:
    """Let RocksDB parse the options of an existing database, with some of them changed.

    Args:
        scratch: folder for the changed options file.

    Returns:
        Those of the database, those of each column family, and the size of the block cache in bytes.
    """
    known = {CACHE: str(_CACHE_BYTES), **read_options_file(database)}
    for name in changes.keys() - known.keys():
        raise TierwiseError(
            f"setting {name} is unknown to RocksDB",
            did_you_mean(name, known, "see its OPTIONS file"),
        )
    for name, value in changes.items():
        if _WHOLE.fullmatch(known[name]) and not _SIZE.fullmatch(value):
            raise TierwiseError(
                f"setting {name}: {value!r} is no whole number", "give a whole number, as 4096 or 64M"
            )
    cache = changes.get(CACHE, str(_CACHE_BYTES))
    if not cache.isdecimal():
        raise TierwiseError(f"setting {CACHE}: {cache!r} is no number of bytes", "give a whole number")
    text = newest_options_file(database).read_text()
    for name, value in changes.items():
        line = f"  {name}={value}".replace("\\", r"\\")
        text = re.sub(rf"(?m)^  {name}=.*$", line, text)
    scratch.mkdir(exist_ok=True)
    (scratch / "OPTIONS-000001").write_text(text)
    (scratch / "rocksdict-config.json").write_text(json.dumps({"raw_mode": True, "prefix_extractors": {}}))
    try:
        return *Options.load_latest(str(scratch), cache=Cache(int(cache))), int(cache)
    except Exception as error:
        named = next((name for name in changes if name in str(error)), ", ".join(changes))
        raise TierwiseError(f"setting {named}: {error}", "choose a value that RocksDB takes") from None


def refuse_ignored_settings(database: Path, changes: Mapping[str, str]) -> None:
    """Refuse settings in whose place RocksDB took another value, by the options file of its opening.

    It takes a number out of range as one within it, and an object that it does not know as none.
    """
    taken = read_options_file(database)
    for name in changes.keys() & taken.keys():
        asked, got = _number(changes[name]), _number(taken[name])
        ignored = taken[name] == _NOTHING and changes[name] != _NOTHING
        if ignored or (asked is not None and got is not None and asked != got):
            raise TierwiseError(
                f"setting {name}: RocksDB takes {changes[name]!r} as {taken[name]!r}",
                "choose a value that it takes as it is",
            )


def _number(text: str) -> float | None:
    if _SIZE.fullmatch(text):
        unit = text.lower()[-1]
        return int(text.rstrip("kmgtKMGT")) << 10 * ("kmgt".find(unit) + 1)
    try:
        return float(text)
    except ValueError:
        return None


class GroupCommit:
    """Lets one caller flush for itself and for all callers that arrived during the previous flush."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._turn = threading.Condition()
        self._written = 0
        self._durable = 0
        self._flushing = False

    def wait(self) -> None:
        """Return when all of the caller's earlier writes are durable.

        An error of a flush is raised only to its caller; the other callers retry.
        """
        with self._turn:
            self._written += 1
            mine = self._written
            self._turn.wait_for(lambda: self._durable >= mine or not self._flushing)
            if self._durable >= mine:
                return
            self._flushing = True
            covered = self._written
        try:
            self._flush()
        except BaseException:
            covered = 0
            raise
        finally:
            with self._turn:
                self._durable = max(self._durable, covered)
                self._flushing = False
                self._turn.notify_all()


_DONE = b"commits/done/"
_ITEM = b"commits/item/"


class RocksCommitSession:
    """A commit is one batch of two keys."""

    def __init__(self, store: KeyValueStore) -> None:
        self._store = store

    def commit(self, client: int, number: int, item: int, body: str) -> None:
        """Write the row's key and the item's new value."""
        row = b"%s%d/%d" % (_DONE, client, number)
        self._store.write({row: b"", _item_key(item): b"%d %s" % (number, body.encode())})

    def fill(self, items: Sequence[tuple[int, int, str]]) -> None:
        """Write all items in one batch."""
        self._store.write({_item_key(item): b"%d %s" % (n, body.encode()) for item, n, body in items})

    def read(self) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int, str]]]:
        """Scan both kinds of keys."""
        done = [_numbers(key, _DONE) for key, _ in self._store.scan(_DONE)]
        items = [
            (_numbers(key, _ITEM)[0], int(number), body.decode())
            for key, value in self._store.scan(_ITEM)
            for number, body in [value.split(b" ", 1)]
        ]
        return [(client, number) for client, number in done], items

    def close(self) -> None:
        """Nothing is open."""


def _item_key(item: int) -> bytes:
    return b"%s%06d" % (_ITEM, item)


def _numbers(key: bytes, prefix: bytes) -> list[int]:
    return [int(part) for part in key.removeprefix(prefix).split(b"/")]


_NO_LIMIT = 1 << 50
_TICKER = re.compile(r"(?m)^rocksdb\.(\S+) .*?COUNT : (\d+)")


class RocksAdapter(EmbeddedAdapter):
    """One database; all sessions share it as an object store."""

    def __init__(self) -> None:
        self.kinds: dict[str, ObjectKind] = {}
        self.locks = KeyLocks()
        self._unsynced = WriteOptions()

    def open(self, opening: OpenParameters) -> None:
        """Make the database with RocksDB's defaults, or repair it, then open it with the settings."""
        system = opening.directory(Role.SYSTEM)
        self._system = system
        if opening.settings.get(REPAIR) == "on":
            Rdict.repair(str(system), _placed(Options(raw_mode=True), opening))
        if not (system / "CURRENT").exists() or not has_options_file(system):
            Rdict(str(system), _placed(Options(raw_mode=True), opening)).close()
        sync = opening.settings.get(SYNC, "on")
        if sync not in ("on", "off"):
            raise TierwiseError(f"setting {SYNC} cannot be {sync!r}", "give on or off")
        self._sync = sync == "on"
        given = {name: value for name, value in opening.settings.items() if name not in (SYNC, REPAIR)}
        loaded, families, self._cache_bytes = load_options(
            system, {**_sizes(opening), **given}, opening.home / NAMED_OPTIONS
        )
        self._options = _placed(loaded, opening)
        self._database = Rdict(str(system), self._options, column_families=families)
        refuse_ignored_settings(system, given)
        self._group = GroupCommit(lambda: self._database.flush_wal(True))
        declared = [value.decode() for _, value in self.scan(KINDS)]
        self.kinds = {kind.name: kind for kind in map(parse_kind, declared, range(len(declared)))}

    def connect(self) -> ObjectClient:
        """Open a session."""
        return ObjectClient(self)

    def execute(self, statement: str) -> None:
        """Declare a kind of object; its indexes lie among the data."""
        kind = parse_kind(statement, len(self.kinds))
        self.write({kind_key(kind.number, kind.name): statement.encode()})
        self.kinds[kind.name] = kind

    def checkpoint(self) -> None:
        """Flush the memtables."""
        self._database.flush()

    def counters(self) -> Counters:
        """RocksDB's own counters, in blocks where other engines count pages."""
        counted = {name: int(count) for name, count in _TICKER.findall(self._options.get_statistics() or "")}
        page_bytes = int(read_options_file(self._system)["block_size"])
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

    def settings(self) -> dict[str, str]:
        """Every option and the version of RocksDB, from its options file."""
        return {
            **read_options_file(self._system),
            CACHE: str(self._cache_bytes),
            SYNC: "on" if self._sync else "off",
        }

    def make_commit_tables(self) -> None:
        """Nothing to make: keys need no schema."""

    def commit_session(self) -> CommitSession:
        """A session that writes a batch for each commit."""
        return RocksCommitSession(self)

    def check(self) -> IntegrityCheck:
        """Read every pair, which verifies checksums: the package has no call for RocksDB's VerifyChecksum."""
        name = "full read with block checksums"
        try:
            for _ in self.scan(b""):
                pass
        except Exception as error:  # the library raises plain ones
            return IntegrityCheck(name=name, problems=[str(error)])
        return IntegrityCheck(name=name)

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


def _placed(options: Options, opening: OpenParameters) -> Options:
    options.create_if_missing(True)
    options.set_wal_dir(str(opening.directory(Role.LOG)))
    options.set_db_paths([DBPath(str(opening.directory(Role.DATA)), _NO_LIMIT)])
    options.set_db_log_dir(str(opening.home))
    options.enable_statistics()
    return options


def _sizes(opening: OpenParameters) -> dict[str, str]:
    """Half of the memory for the block cache, a quarter for memtables."""
    memory_bytes = opening.limits.memory_bytes
    if memory_bytes is None:
        return {}
    return {CACHE: str(memory_bytes // 2), "db_write_buffer_size": str(memory_bytes // 4)}
