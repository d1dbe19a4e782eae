"""Tables and indexes of a recording: their names, their files, and what those files were asked for.

Names come from the recording, if the server was asked over SQL, or from a file. InnoDB names its files after
their tables.
"""

from __future__ import annotations

import csv
import io
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, parse_as_model, read_text
from tierwise.model.names import did_you_mean
from tierwise.recording.breakdown import FileTraffic
from tierwise.recording.buffer_content import BufferContent, BufferedFile
from tierwise.results.measurements import StrictModel

Kind = Literal["table", "index", "toast", "materialized view"]
_COLUMNS = ("path", "name", "kind", "table", "partitioned", "database", "size_bytes")
_REQUIRED = ("path", "name", "kind")
_FORKS = re.compile(r"(_(fsm|vm|init))?(\.\d+)?( \(deleted\))?$")
"""What PostgreSQL adds to the number of a relation: its forks, and segments of 1 GB."""
_INNODB = re.compile(r"(?:^|/)([^/]+)/([^/]+)\.ibd$")
_INNODB_ENGINES = ("mariadb", "mysql")
_SYSTEM = ("mysql/", "sys/")
"""Schemas of InnoDB whose tables are the server's own."""
_ENCODED = re.compile(r"@([0-9a-f]{4}|[0-9A-Za-z@][0-9A-Za-z@])")
"""A letter in a name of MariaDB's files: its documentation, "Identifier to File Name Mapping"."""
_PARTS = re.compile(r"#p#", re.IGNORECASE)
_PREFIX = re.compile(r"(table|index):(.+)", re.DOTALL)


class Relation(StrictModel):
    """A table, an index or another relation with files of its own."""

    path: str = Field(min_length=1)
    """End of the path of its first file, such as ``base/5/16397``."""
    name: str = Field(min_length=1)
    """With its schema, such as ``public.orders``; one of the two that has a dot itself is in quotes."""
    kind: Kind
    table: str | None = None
    """The table that it belongs to; ``None`` for a table."""
    partitioned: str | None = None
    """The partitioned table that its table is a part of."""
    database: str = ""
    size_bytes: int = Field(default=0, ge=0)
    """Of all its files; 0 if not known."""

    @property
    def is_index(self) -> bool:
        """Whether ``ALTER INDEX`` moves it; TOAST moves with its table."""
        return self.kind == "index"

    @property
    def moves_as(self) -> str:
        """Name of the relation that is moved by a statement: TOAST moves with its table."""
        return self.table if self.kind == "toast" and self.table else self.name

    @property
    def label(self) -> str:
        """Its name, with the database if that is another one than the connected."""
        return self.qualified(self.moves_as)

    def qualified(self, name: str) -> str:
        """A name in its database."""
        return f"{_quoted(self.database)}.{name}" if self.database else name

    @property
    def pattern(self) -> str:
        """The name in a placement that stands for it alone."""
        return f"{'index' if self.is_index else 'table'}:{self.label}"

    @property
    def tables(self) -> list[str]:
        """Names of the table that it is or belongs to, and of the partitioned one."""
        return [name for name in (self.table or self.name, self.partitioned) if name]


@dataclass
class RelationTraffic:
    """What the files of one movable relation were asked for: a table with its TOAST, or an index."""

    relation: Relation
    files: list[int] = field(default_factory=list)
    """Numbers of its files in the recording."""
    size_bytes: int = 0
    """Of all its files."""
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    waited_s: float = 0.0
    """Time that client sessions waited in calls for its files."""
    device_s: float = 0.0
    """Time that its requests spent at the device, summed."""
    buffered_bytes: int = 0
    """Of its pages in the engine's buffer at the end, if that was asked for."""
    buffered_by_use: Counter[str] = field(default_factory=Counter)
    """Number of these pages by what the engine keeps of their use."""

    def add(self, row: FileTraffic) -> None:
        """Add the requests of one of its files."""
        self.files.append(row.file)
        self.reads += row.reads
        self.writes += row.writes
        self.read_bytes += row.read_bytes
        self.written_bytes += row.written_bytes
        self.waited_s += row.session_waited_s
        self.device_s += row.device_s

    def add_buffered(self, file: BufferedFile, page_bytes: int) -> None:
        """Add the pages of one of its files in the engine's buffer."""
        self.buffered_bytes += file.pages * page_bytes
        self.buffered_by_use.update(file.pages_by_use)


@dataclass(frozen=True)
class Relations:
    """Movable relations of a recording, those that were waited for longest first."""

    rows: Sequence[RelationTraffic]
    """Tables and indexes that the recording shows or the catalog names."""
    unnamed: Sequence[FileTraffic]
    """Files of tables or indexes without a name."""
    buffer: BufferContent | None = None
    """The engine's buffer at the end, if that was asked for."""

    @property
    def used(self) -> list[RelationTraffic]:
        """Those that were read or written, and took a session or a device some time."""
        return [row for row in self.rows if row.files and (row.waited_s > 0 or row.device_s > 0)]

    def require_names(self) -> None:
        """Refuse a recording without names of tables."""
        if not self.rows:
            raise TierwiseError(
                "the recording has no names of tables",
                "record with --dsn or --names-from-files, or give --names FILE; see docs/how-to/tables.md",
            )

    def matching(self, patterns: Iterable[str]) -> list[RelationTraffic]:
        """The relations that any of these patterns names.

        A pattern is a name such as ``public.orders``, in which ``*`` stands for any letters. It names a table
        or an index, and the partitions of a partitioned table; ``table:PATTERN`` names tables only,
        ``index:PATTERN`` indexes, also by their tables.

        Names of other databases than the connected one begin with the database. Without it, a pattern names
        something in another database only if it names nothing in the connected one.
        """
        self.require_names()
        matching: dict[str, RelationTraffic] = {}
        for pattern in patterns:
            rows = self._named(pattern)
            matching |= {f"{row.relation.database}.{row.relation.path}": row for row in rows}
        return list(matching.values())

    def _named(self, pattern: str) -> list[RelationTraffic]:
        """The relations that a pattern names; refused as :meth:`matching` says."""
        own = [row for row in self.rows if not row.relation.database and _fits(row.relation, pattern)]
        others = [row for row in self.rows if row.relation.database]
        prefix = _PREFIX.fullmatch(pattern)
        first = (prefix[2] if prefix else pattern).partition(".")[0]
        if own and "*" not in first:  # a schema of the connected database, not another one of its name
            return own
        if rows := own + [row for row in others if _fits(row.relation, pattern, qualified=True)]:
            return rows
        rows = [row for row in others if _fits(row.relation, pattern)]
        if not rows:
            raise self._unknown(pattern)
        if len({row.relation.database for row in rows}) > 1:
            names = list(dict.fromkeys(row.relation.label for row in rows))
            raise TierwiseError(
                f"{pattern} is in several databases", f"put the database first: {', '.join(names[:4])}"
            )
        return rows

    def _unknown(self, pattern: str) -> TierwiseError:
        known = [row.relation.label for row in self.rows]
        prefix = _PREFIX.fullmatch(pattern)
        listed = "tierwise profile --by file lists the tables and indexes"
        return TierwiseError(
            f"no table or index of the recording is named {pattern}",
            did_you_mean(prefix[2] if prefix else pattern, known, listed),
        )


def relations_of(
    engine: str, files: Sequence[FileTraffic], named: Sequence[Relation], buffer: BufferContent | None = None
) -> Relations:
    """Join the files of a recording with the names of tables and indexes."""
    by_path = {_known_part(relation.path): relation for relation in named}
    movable: dict[tuple[str, str], RelationTraffic] = {}
    for named_relation in named:
        row = movable.setdefault(
            (named_relation.database, named_relation.moves_as), RelationTraffic(named_relation)
        )
        if named_relation.kind != "toast":
            row.relation = named_relation
        row.size_bytes += named_relation.size_bytes
    touched: Counter[tuple[str, str]] = Counter()
    unnamed = []

    def relation_of(path: str) -> Relation | None:
        parts = _FORKS.sub("", path).split("/")
        ends = ("/".join(parts[-count:]) for count in range(min(len(parts), 4), 0, -1))
        of_catalog = next((by_path[end] for end in ends if end in by_path), None)
        return of_catalog or (_innodb(path) if engine in _INNODB_ENGINES else None)

    for file in files:
        if file.role not in ("data", "index"):
            continue
        relation = relation_of(file.path)
        if relation is None:
            unnamed.append(file)
            continue
        key = (relation.database, relation.moves_as)
        row = movable.setdefault(key, RelationTraffic(relation))
        row.add(file)
        touched[key] += file.size_bytes
        row.size_bytes = max(row.size_bytes, touched[key])
    if buffer is not None:
        for held in buffer.files:
            relation = None if held.path.startswith(_SYSTEM) else relation_of(held.path)
            if relation is not None:
                key = (relation.database, relation.moves_as)
                movable.setdefault(key, RelationTraffic(relation)).add_buffered(held, buffer.page_bytes)
    rows = sorted(movable.values(), key=lambda row: (-row.waited_s, -row.device_s, row.relation.name))
    return Relations(rows, unnamed, buffer)


def read_relation_names(file: Path) -> list[Relation]:
    """Read names from a CSV file with the columns path, name and kind.

    Further columns may be table, partitioned, database and size_bytes.
    """
    text = read_text(file, "give a CSV file; docs/how-to/tables.md has the query that writes it")
    reader = csv.DictReader(io.StringIO(text), strict=True)
    fix = f"the first line names the columns: {', '.join(_COLUMNS)}"
    try:
        columns = reader.fieldnames or []
        missing = [name for name in _REQUIRED if name not in columns]
        if missing:
            raise TierwiseError(f"{file}: no column {missing[0]}", fix)
        named: dict[tuple[str, str], Relation] = {}
        by_path: dict[str, str] = {}
        for row in reader:
            known = {name: value for name, value in row.items() if name in _COLUMNS and value}
            where = f"{file}, line {reader.line_num}"
            relation = parse_as_model(Relation, known, where, fix)
            first = named.setdefault((relation.database, relation.name), relation)
            if first.path != relation.path:
                raise TierwiseError(
                    f"{where}: {relation.name} is {relation.path} here and {first.path} above",
                    "give tables of several databases the column database; "
                    'put a schema or table whose name has a dot in quotes, as "eu.shop".orders',
                )
            other = by_path.setdefault(_known_part(relation.path), relation.name)
            if other != relation.name:
                raise TierwiseError(
                    f"{where}: {relation.path} is {relation.name} here and {other} above",
                    "give each path one name",
                )
    except csv.Error as error:
        raise TierwiseError(f"{file}, line {reader.line_num}: {error}", fix) from None
    return list(named.values())


def _fits(relation: Relation, pattern: str, *, qualified: bool = False) -> bool:
    """Whether a pattern names a relation: without its database, or ``qualified`` by it."""
    prefix = _PREFIX.fullmatch(pattern)
    names = [relation.name, *(relation.tables if prefix or not relation.is_index else [])]
    if prefix is not None:
        kind, pattern = prefix.groups()
        if (kind == "index") != relation.is_index:
            return False
    pattern = pattern.replace("[", "[[]")
    return any(fnmatchcase(relation.qualified(name) if qualified else name, pattern) for name in names)


def qualified_name(schema: str, name: str) -> str:
    """A name with its schema; one of the two that has a dot itself is in quotes."""
    return f"{_quoted(schema)}.{_quoted(name)}"


def _quoted(name: str) -> str:
    """A database, schema or table in quotes if its own name has a dot, as in PostgreSQL."""
    return '"{}"'.format(name.replace('"', '""')) if "." in name else name


def _known_part(path: str) -> str:
    """The part of a path that the catalog and the kernel share: the kernel follows links of tablespaces."""
    parts = path.strip("/").split("/")
    return "/".join(parts[2:] if parts[0] == "pg_tblspc" else parts)


def _innodb(path: str) -> Relation | None:
    match = _INNODB.search(path.removesuffix(" (deleted)"))
    if match is None:
        return None
    schema, stem = (_ENCODED.sub(_decoded, part) for part in match.groups())
    table, *parts = _PARTS.split(stem, maxsplit=1)
    return Relation(
        path=posixpath.join(*match.groups()) + ".ibd",
        name=qualified_name(schema, stem),
        kind="table",
        partitioned=qualified_name(schema, table) if parts else None,
    )


def _decoded(code: re.Match[str]) -> str:
    return chr(int(code[1], 16)) if len(code[1]) == 4 else _letters().get(code[1], code[0])


@cache
def _letters() -> dict[str, str]:
    """Letters that are written as two characters, by these."""
    lines = [
        line.split(" ", 1)
        for line in (DATA / "file_names.txt").read_text("utf-8").splitlines()
        if line[0] != "#"
    ]
    return {first + row[at]: row[at + 1] for first, row in lines for at in range(0, len(row), 2)}
