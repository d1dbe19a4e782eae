"""The dialect ``objects``: operations on objects of a kind, for engines that take no SQL.

    OBJECT pilot KEY id FIELDS (id integer, name text) INDEXES (name)
    INSERT pilot (id, name) VALUES (:id, :name)
    GET pilot (id) VALUES (:id)
    FIND pilot (name) VALUES (:name)
    SCAN pilot LIMIT 100
    UPDATE pilot (name) VALUES (:name) KEY (:id)
    DELETE pilot KEY (:id)

A parameter may also be a question mark: arguments then come in the order of the marks. That a verb has its
fields is checked where a workload is read (``ObjectOperation.problems``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tierwise.model.errors import TierwiseError
from tierwise.model.names import split_names, unknown_name_fix

Value = int | float | str | None
"""Types of a field."""

_KIND = re.compile(
    r"OBJECT\s+(?P<name>\w+)\s+KEY\s+(?P<key>\w+)\s+FIELDS\s*\((?P<fields>[^)]*)\)"
    r"(?:\s+INDEXES\s*\((?P<indexes>[^)]*)\))?",
)
_OPERATION = re.compile(
    r"(?P<verb>INSERT|GET|FIND|SCAN|UPDATE|DELETE)\s+(?P<kind>\w+)"
    r"(?:\s*\((?P<fields>[^)]*)\)\s*VALUES\s*\((?P<values>[^)]*)\))?"
    r"(?:\s*KEY\s*\((?P<key>[^)]*)\))?"
    r"(?:\s+LIMIT\s+(?P<limit>\d+))?",
)


@dataclass(frozen=True)
class ObjectKind:
    """A set of objects with the same fields."""

    name: str
    number: int
    """Unique in its database."""
    key: str
    fields: tuple[str, ...]
    indexes: tuple[str, ...]

    def place_of(self, field: str) -> int:
        """Position of a field among the fields."""
        if field not in self.fields:
            raise TierwiseError(f"{self.name} has no field {field}", unknown_name_fix(field, self.fields))
        return self.fields.index(field)


@dataclass(frozen=True)
class Operation:
    """One operation, ready for arguments."""

    verb: str
    kind: ObjectKind
    places: tuple[int, ...] = ()
    """Positions of the fields that are set or looked up."""
    arguments: tuple[int, ...] = ()
    """Index of the argument for each of these fields."""
    key_argument: int | None = None
    limit: int | None = None


def parse_kind(statement: str, number: int) -> ObjectKind:
    """Read a declaration."""
    match = _KIND.fullmatch(statement.strip())
    if match is None:
        raise TierwiseError(f"{_shown(statement)} declares no kind of object", "write OBJECT name KEY ...")
    fields = tuple(field.split()[0] for field in split_names(match["fields"]))
    kind = ObjectKind(match["name"], number, match["key"], fields, tuple(split_names(match["indexes"] or "")))
    for named in (kind.key, *kind.indexes):
        kind.place_of(named)
    return kind


def parse_operation(statement: str, names: Sequence[str], kinds: Mapping[str, ObjectKind]) -> Operation:
    """Read an operation."""
    match = _OPERATION.fullmatch(statement.strip())
    if match is None:
        raise TierwiseError(
            f"{_shown(statement)} is no operation on objects", "see docs/reference/engines.md"
        )
    if match["kind"] not in kinds:
        raise TierwiseError(
            f"there are no objects of the kind {match['kind']}", f"use one of {', '.join(kinds) or 'none'}"
        )
    kind = kinds[match["kind"]]
    marks = re.findall(r"\?|:(\w+)", statement)
    parameters = [names.index(mark) if mark else place for place, mark in enumerate(marks)]
    values, keys = split_names(match["values"] or ""), split_names(match["key"] or "")
    return Operation(
        verb=match["verb"],
        kind=kind,
        places=tuple(kind.place_of(field) for field in split_names(match["fields"] or "")),
        arguments=tuple(parameters[: len(values)]),
        key_argument=parameters[len(values)] if keys else None,
        limit=None if match["limit"] is None else int(match["limit"]),
    )


def _shown(statement: str) -> str:
    return repr(" ".join(statement.split())[:80])
