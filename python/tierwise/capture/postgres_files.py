"""Names of PostgreSQL's tables and indexes from the files of a running server; nothing is written.

``main`` runs in a process of its own, as the server's user: whatever these files hold, or lead to, it can do
no more than that user (:mod:`.postgres_names` starts it). It imports the standard library alone.

The files show the catalog as of the last checkpoint, or later. A version of a row counts if it was not
certainly deleted (storage/bufpage.h, access/htup_details.h, clog.c of PostgreSQL 13 to 18). Where two that
count contradict each other, or a row does not fit its layout, there is no name.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
import struct
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

_LEAST_VERSION, _MOST_VERSION = 13, 18
_WITH_FROZEN_PAGES = 18
"""Version from which on pg_class has ``relallfrozen``."""
_PAGE_BYTES = 8192
_MOST_FILE_BYTES = 64 << 20
"""Of one catalog of one database; larger ones are not read."""
_MOST_OUTPUT_BYTES = 6 << 20
_MOST_MEMORY_BYTES = 1 << 30
"""More than the largest catalog takes: pages may have many pointers to one row."""
_TOO_LARGE = f"they need more than {_MOST_MEMORY_BYTES >> 20} MiB of memory"
_MOST_PASSES = 6
_FIRST_USER_OID = 16384
_DEFAULT_SPACE = 1663
_PG_CLASS, _PG_DATABASE, _PG_INDEX, _PG_INHERITS, _PG_NAMESPACE = 1259, 1262, 2610, 2611, 2615
_MAP_MAGIC, _MAP_BYTES = 0x592717, 524
_PAGE_HEADER = struct.Struct("=12xHHHH")
"""``pd_lower``, ``pd_upper``, ``pd_special``, ``pd_pagesize_version``."""
_PAGE_VERSION = _PAGE_BYTES | 4
_ROW_HEADER = struct.Struct("=II12xHB")
"""``t_xmin``, ``t_xmax``, ``t_infomask``, ``t_hoff``."""
_CONTROL = struct.Struct("=8xII88xq")
"""``pg_control_version``, ``catalog_version_no``, ``checkPointCopy.time``."""
_LOCKED_ONLY, _XMIN_COMMITTED, _XMIN_INVALID, _XMAX_COMMITTED, _XMAX_INVALID, _XMAX_MULTI = (
    *(0x0080, 0x0100, 0x0200, 0x0400, 0x0800, 0x1000),
)
_FIRST_NORMAL_XID = 3
_COMMITS_PER_FILE, _COMMITS_PER_BYTE, _COMMITTED, _ABORTED = 1 << 20, 4, 1, 2
_UTF8 = 6
_LP_NORMAL = 1
_KINDS = {b"r": "table", b"m": "materialized view", b"t": "table", b"i": "index"}
_OPENED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOATIME


class UnknownLayoutError(Exception):
    """What a file holds is not what PostgreSQL writes, or is not known here."""


Versions = dict[int, list[tuple[Any, ...]]]
"""Versions of the rows of a catalog by their first column: the other columns, then whether one is certain."""


class _PgClassColumns(NamedTuple):
    """Columns of pg_class."""

    name: bytes
    schema: int
    node: int
    space: int
    toast: int
    persistence: bytes
    kind: bytes
    certain: bool


class _DataDirectory:
    """The data directory of a server, by descriptor."""

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self.version = int(self._read("PG_VERSION")[:8] or 0)
        if not _LEAST_VERSION <= self.version <= _MOST_VERSION:
            raise UnknownLayoutError(
                f"PostgreSQL {self.version} is not among {_LEAST_VERSION} to {_MOST_VERSION}"
            )
        _, number, self.checkpoint_s = _CONTROL.unpack_from(self._read("global/pg_control"))
        self.space_directory = f"PG_{self.version}_{number}"
        self._commits: dict[int, bytes] = {}

    def _open(self, path: str) -> int:
        opened = os.open(path, _OPENED, dir_fd=self._directory)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise UnknownLayoutError(f"{path} is no file")
        return opened

    def _read(self, path: str) -> bytes:
        """A small file that the server reads or writes anyway."""
        opened = self._open(path)
        try:
            return os.pread(opened, _PAGE_BYTES, 0)
        finally:
            os.close(opened)

    def _pages(self, path: str) -> bytes:
        """All pages of a catalog, read until no page was being written; the page cache is as before."""
        opened = self._open(path)
        uncached: set[tuple[int, int]] = set()
        try:
            os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_RANDOM)
            before = None
            for _ in range(_MOST_PASSES):
                size = os.fstat(opened).st_size
                if size > _MOST_FILE_BYTES:
                    raise UnknownLayoutError(f"{path} has {size >> 20} MiB")
                pages = b"".join(_page(opened, offset, uncached) for offset in range(0, size, _PAGE_BYTES))
                if pages == before:
                    return pages
                before = pages
        finally:
            for offset, length in uncached:
                os.posix_fadvise(opened, offset, length, os.POSIX_FADV_DONTNEED)
            os.close(opened)
        raise UnknownLayoutError(f"{path} changes all the time")

    def mapped(self, directory: str, relation: int) -> int:
        """Number of the file of a relation that ``pg_filenode.map`` has."""
        content = self._read(f"{directory}/pg_filenode.map")[:_MAP_BYTES]
        magic, count = struct.unpack_from("=ii", content)
        if magic != _MAP_MAGIC or not 0 < count <= 64:
            raise UnknownLayoutError(f"{directory}/pg_filenode.map is no map")
        numbers = dict(struct.unpack_from("=II", content, 8 + 8 * place) for place in range(count))
        return int(numbers.get(relation, 0))

    def versions(self, path: str, layout: str) -> Versions:
        """Versions of the rows of a catalog that may be visible."""
        columns, pages = struct.Struct(layout), self._pages(path)
        found: Versions = defaultdict(list)
        for start in range(0, len(pages), _PAGE_BYTES):
            page = pages[start : start + _PAGE_BYTES]
            lower, upper, special, version = _PAGE_HEADER.unpack_from(page)
            if not upper and not any(page):  # not used yet
                continue
            if version != _PAGE_VERSION or not 24 <= lower <= upper <= special == len(page):
                raise UnknownLayoutError(f"{path} has a page that is none of a table")
            for (pointer,) in struct.iter_unpack("=I", page[24 : lower - lower % 4]):
                offset, state, length = pointer & 0x7FFF, pointer >> 15 & 3, pointer >> 17
                if state != _LP_NORMAL:
                    continue
                if offset < upper or length < 24 or offset + length > special:
                    raise UnknownLayoutError(f"{path} has a row outside of its page")
                xmin, xmax, marks, header = _ROW_HEADER.unpack_from(page, offset)
                if header % 8 or not 24 <= header <= length - columns.size:
                    raise UnknownLayoutError(f"{path} has a row of another layout")
                made, deleted = self._is_made(xmin, marks), self._is_deleted(xmax, marks)
                if made is not False and deleted is not True:
                    key, *values = columns.unpack_from(page, offset + header)
                    found[key].append((*values, made is True and deleted is False))
        return found

    def _is_made(self, xmin: int, marks: int) -> bool | None:
        if marks & _XMIN_COMMITTED or xmin < _FIRST_NORMAL_XID:  # with both marks, it is frozen
            return True
        return False if marks & _XMIN_INVALID else self._is_committed(xmin)

    def _is_deleted(self, xmax: int, marks: int) -> bool | None:
        if marks & _XMAX_INVALID or not xmax or marks & _LOCKED_ONLY:
            return False
        if marks & _XMAX_MULTI:
            return None
        return True if marks & _XMAX_COMMITTED else self._is_committed(xmax)

    def _is_committed(self, xid: int) -> bool | None:
        """By the log of commits; ``None`` while it does not tell."""
        number, place = divmod(xid, _COMMITS_PER_FILE)
        try:
            if number not in self._commits:
                self._commits[number] = self._pages(f"pg_xact/{number:04X}")
            byte = self._commits[number][place // _COMMITS_PER_BYTE]
        except (FileNotFoundError, IndexError):
            return None
        return {_COMMITTED: True, _ABORTED: False}.get(byte >> 2 * (place % _COMMITS_PER_BYTE) & 3)

    def sizes(self, space: int, database: int) -> dict[int, int]:
        """Bytes of each relation of a database in a tablespace, by number."""
        sizes: Counter[int] = Counter()
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        directory = os.open(self.folder(space, database), flags, dir_fd=self._directory)
        try:
            for entry in os.scandir(directory):
                number, _, fork = entry.name.partition(".")[0].partition("_")
                if number.isdecimal() and fork != "init":
                    sizes[int(number)] += entry.stat(follow_symlinks=False).st_size
        finally:
            os.close(directory)
        return sizes

    def folder(self, space: int, database: int) -> str:
        """Directory of a database in a tablespace, as ``pg_relation_filepath`` has it."""
        if space == _DEFAULT_SPACE:
            return f"base/{database}"
        return f"pg_tblspc/{space}/{self.space_directory}/{database}"


def _page(opened: int, offset: int, uncached: set[tuple[int, int]]) -> bytes:
    """One page; what of it the page cache did not hold is added to ``uncached``."""
    page = bytearray(_PAGE_BYTES)
    try:
        held = os.preadv(opened, [page], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        held = 0
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return os.pread(opened, _PAGE_BYTES, offset)
    if held == _PAGE_BYTES:
        return bytes(page)
    uncached.add((offset + held, _PAGE_BYTES - held))
    return os.pread(opened, _PAGE_BYTES, offset)


def _certain_columns(versions: Iterable[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The columns of a row of which one version is certain and no other contradicts it."""
    distinct = {version[:-1] for version in versions}
    return distinct.pop() if len(distinct) == 1 and any(version[-1] for version in versions) else None


class _Database(NamedTuple):
    """A database, with its default tablespace."""

    number: int
    name: str
    space: int
    is_utf8: bool


def read_databases(server: _DataDirectory) -> list[_Database]:
    """Databases whose name is certain."""
    between = 148 if server.version < 15 else 16  # from the encoding to the default tablespace
    path = f"global/{server.mapped('global', _PG_DATABASE)}"
    found = []
    for number, versions in server.versions(path, f"=I64s4xi{between}xI").items():
        if values := _certain_columns(versions):
            name, encoding, space = values
            if text := _text(name, is_utf8=encoding == _UTF8):
                found.append(_Database(number, text, space, encoding == _UTF8))
    if all(database.name != "template1" for database in found):
        raise UnknownLayoutError(f"{path} is no list of databases")
    return found


def _text(name: bytes, *, is_utf8: bool) -> str | None:
    """A name of a catalog; ``None`` if its letters are not certain."""
    try:
        return name.partition(b"\0")[0].decode("utf-8" if is_utf8 else "ascii") or None
    except UnicodeDecodeError:
        return None


def read_relations(server: _DataDirectory, database: _Database) -> tuple[list[dict[str, Any]], int]:
    """Tables and indexes of a database that have files, and the number of those whose name is not certain."""
    home = server.folder(database.space, database.number)
    frozen = "" if server.version < _WITH_FROZEN_PAGES else "4x"
    path = f"{home}/{server.mapped(home, _PG_CLASS)}"
    read = server.versions(path, f"=I64sI16xII12x{frozen}I2x1s1s")
    classes = {
        number: [_PgClassColumns(*columns) for columns in versions] for number, versions in read.items()
    }
    own = classes.get(_PG_CLASS) or [_PgClassColumns(b"", 0, 0, 0, 0, b"", b"", certain=False)]
    if [own[0].name.rstrip(b"\0"), own[0].node, own[0].kind] != [b"pg_class", 0, b"r"]:
        raise UnknownLayoutError(f"{path} is no list of tables")

    def catalog(number: int, layout: str = "=II") -> dict[int, Any]:
        columns = _certain_columns(classes.get(number, []))
        if columns is None:
            raise UnknownLayoutError(f"{home}: the file of catalog {number} is not certain")
        of_rows = server.versions(f"{home}/{columns[2]}", layout)
        found = {key: _certain_columns(versions) for key, versions in of_rows.items()}
        return {key: values[0] for key, values in found.items() if values}

    schemas = catalog(_PG_NAMESPACE, "=I64s")
    tables, parents = catalog(_PG_INDEX), catalog(_PG_INHERITS)
    named: dict[int, tuple[str, str]] = {}
    for number, versions in classes.items():
        same = {(each.name, each.schema, each.toast, each.kind) for each in versions}
        texts = [
            _text(name, is_utf8=database.is_utf8)
            for name in (schemas.get(versions[0].schema, b""), versions[0].name)
        ]
        if len(same) == 1 and any(each.certain for each in versions) and texts[0] and texts[1]:
            named[number] = texts[0], texts[1]
    twice = Counter(named.values())
    named = {number: name for number, name in named.items() if twice[name] == 1}
    holders = {classes[number][0].toast: number for number in named}

    def root(number: int) -> int:
        for _ in parents:
            above = parents.get(number, 0)
            if above not in named or classes[above][0].kind != b"p":
                break
            number = above
        return number

    sizes: dict[int, dict[int, int]] = {}
    found, unknown = [], 0
    for number, versions in classes.items():
        kind = versions[0].kind
        if number < _FIRST_USER_OID or kind not in _KINDS or versions[0].persistence == b"t":
            continue
        table = tables.get(number, 0) if kind == b"i" else number
        is_toast = table in classes and classes[table][0].kind == b"t"
        owner = holders.get(table, 0) if is_toast else table
        if number not in named or owner not in named:
            unknown += 1
            continue
        # A number is not given to another file while this one exists, so that older versions tell it too.
        for space, node in {(each.space or database.space, each.node) for each in versions}:
            if space not in sizes:
                sizes[space] = server.sizes(space, database.number)
            if node in sizes[space]:
                row = {
                    "path": f"{server.folder(space, database.number)}/{node}",
                    "name": named[number],
                    "kind": "toast" if is_toast else _KINDS[kind],
                    "table": named[owner] if owner != number else None,
                    "partitioned": named[root(owner)] if root(owner) != owner else None,
                    "database": database.name,
                    "size_bytes": sizes[space][node],
                }
                found.append(row)
    claimed = Counter(row["path"] for row in found)
    return [row for row in found if claimed[row["path"]] == 1], unknown


def read_all_names(directory: int) -> dict[str, Any]:
    """All names of the server with this data directory, the largest first, and what is not known."""
    server = _DataDirectory(directory)
    found: list[dict[str, Any]] = []
    unread: dict[int, str] = {}
    unknown = 0
    for database in read_databases(server):
        try:
            more, uncertain = read_relations(server, database)
        except (OSError, UnknownLayoutError, MemoryError) as error:
            unread[database.number] = str(error) or _TOO_LARGE
        else:
            found, unknown = found + more, unknown + uncertain
    found.sort(key=lambda row: -int(row["size_bytes"]))
    lengths = accumulate(len(json.dumps(row)) + 2 for row in found)
    kept = sum(length <= _MOST_OUTPUT_BYTES for length in lengths)
    return {
        "checkpoint_s": server.checkpoint_s,
        "relations": found[:kept],
        "unknown": unknown + len(found) - kept,
        "unread": unread,
    }


def main() -> None:
    """Write the names to the standard output, as JSON; the first argument is the directory's descriptor."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    try:
        answer = read_all_names(int(sys.argv[1]))
    except (OSError, UnknownLayoutError, ValueError, struct.error, MemoryError) as error:
        answer = {"problem": str(error) or _TOO_LARGE}
    with os.fdopen(1, "w", encoding="utf-8") as output:
        json.dump(answer, output)
