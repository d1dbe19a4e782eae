"""Operations on objects of one kind: in a form for engines without SQL, and as SQL for the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, Field

from tierwise.lab.workloads.program import RoleSql
from tierwise.model.input_files import STRICT, Name
from tierwise.model.placement import Role

FieldType = Literal["integer", "real", "text"]
_SQL_TYPES: dict[FieldType, str] = {"integer": "bigint", "real": "double precision", "text": "text"}
_SQL_KEY_TEXT = "varchar(255)"
"""Type of text in keys and indexes: not every engine indexes text without a length."""


_VERBS = ("insert", "get", "find", "scan", "update", "delete")


class ObjectKind(BaseModel):
    """Objects of one kind: a key, fields, and the fields that they can be found by."""

    model_config = STRICT

    key: Name
    fields: dict[Name, FieldType] = Field(min_length=1)
    indexes: list[Name] = []

    def tables(self, name: str) -> RoleSql:
        """Statements in PostgreSQL's dialect that make the table and its indexes."""
        columns = ", ".join(
            f"{field} {self._sql_type(field, kind)} NOT NULL" for field, kind in self.fields.items()
        )
        indexes = [f"CREATE INDEX {name}_{field} ON {name} ({field})" for field in self.indexes]
        return [
            (Role.DATA, f"CREATE TABLE {name} ({columns})"),
            (Role.INDEX, f"ALTER TABLE {name} ADD PRIMARY KEY ({self.key})"),
            *((Role.INDEX, statement) for statement in indexes),
        ]

    def declaration(self, name: str) -> str:
        """The statement that declares the kind to an engine without SQL."""
        fields = ", ".join(f"{field} {kind}" for field, kind in self.fields.items())
        return f"OBJECT {name} KEY {self.key} FIELDS ({fields}) INDEXES ({', '.join(self.indexes)})"

    def problem(self) -> tuple[str, str] | None:
        """A field that is used but not declared, with the fix."""
        unknown = [field for field in [self.key, *self.indexes] if field not in self.fields]
        return (f"names the unknown field {unknown[0]!r}", "declare it under fields") if unknown else None

    def _sql_type(self, field: str, kind: FieldType) -> str:
        looked_up = field == self.key or field in self.indexes
        return _SQL_KEY_TEXT if kind == "text" and looked_up else _SQL_TYPES[kind]


class ObjectOperation(BaseModel):
    """One operation, named by its field; the value is the kind of object.

    A field's value comes from the parameter of the same name, unless ``with`` names another.
    """

    model_config = STRICT

    insert: Name | None = None
    get: Name | None = None
    find: Name | None = None
    scan: Name | None = None
    update: Name | None = None
    delete: Name | None = None
    by: Name | None = None
    set: list[Name] = []
    limit: int | None = Field(default=None, ge=1)
    parameters: dict[Name, Name] = Field(default={}, alias="with")

    @property
    def verb(self) -> str:
        """Name of the operation; empty unless exactly one is given."""
        verbs = [verb for verb in _VERBS if getattr(self, verb)]
        return verbs[0] if len(verbs) == 1 else ""

    @property
    def kind(self) -> str:
        """Name of the kind of object."""
        return str(getattr(self, self.verb))

    def problems(self, kinds: dict[str, ObjectKind]) -> Iterator[tuple[str, str]]:
        """Mistakes, each with its fix; only the first is reliable."""
        if not self.verb:
            yield "does not name one operation", f"give one of {', '.join(_VERBS)}"
        if self.kind not in kinds:
            yield f"names the unknown kind {self.kind!r}", f"declare it under [objects.{self.kind}]"
        kind = kinds[self.kind]
        if (self.by is not None) != (self.verb == "find"):
            yield "by", "find needs the field to find by; the others go by key"
        if bool(self.set) != (self.verb == "update"):
            yield "set", "update needs the fields to set; the others take none"
        if self.limit is not None and self.verb != "scan":
            yield "limit", "only a scan can be limited"
        if self.by is not None and self.by not in kind.indexes:
            yield f"by: {self.by!r} is not indexed", f"use one of {', '.join(kind.indexes) or 'none'}, or get"
        for field in [*self.set, *self.parameters]:
            if field not in kind.fields:
                yield f"names the unknown field {field!r}", f"use one of {', '.join(kind.fields)}"
        if kind.key in self.set:
            yield f"set: {kind.key!r} is the key", "delete the object and insert another"

    def sql(self, kind: ObjectKind) -> str:
        """The operation in PostgreSQL's dialect."""
        name, all_fields = self.kind, ", ".join(kind.fields)
        by_key = f"WHERE {kind.key} = {self._value(kind.key)}"
        match self.verb:
            case "insert":
                return f"INSERT INTO {name} ({all_fields}) VALUES ({self._values(kind.fields)})"
            case "get":
                return f"SELECT {all_fields} FROM {name} {by_key}"
            case "find":
                return f"SELECT {all_fields} FROM {name} WHERE {self.by} = {self._value(str(self.by))}"
            case "scan":
                return f"SELECT {all_fields} FROM {name}" + (f" LIMIT {self.limit}" if self.limit else "")
            case "update":
                changes = ", ".join(f"{field} = {self._value(field)}" for field in self.set)
                return f"UPDATE {name} SET {changes} {by_key}"
            case _:
                return f"DELETE FROM {name} {by_key}"

    def canonical(self, kind: ObjectKind) -> str:
        """The operation in the form that engines without SQL read."""
        name, key = self.kind, f"({self._value(kind.key)})"
        match self.verb:
            case "insert":
                return f"INSERT {name} ({', '.join(kind.fields)}) VALUES ({self._values(kind.fields)})"
            case "get":
                return f"GET {name} ({kind.key}) VALUES {key}"
            case "find":
                return f"FIND {name} ({self.by}) VALUES ({self._value(str(self.by))})"
            case "scan":
                return f"SCAN {name}" + (f" LIMIT {self.limit}" if self.limit else "")
            case "update":
                return f"UPDATE {name} ({', '.join(self.set)}) VALUES ({self._values(self.set)}) KEY {key}"
            case _:
                return f"DELETE {name} KEY {key}"

    def _values(self, fields: list[str] | dict[str, FieldType]) -> str:
        return ", ".join(self._value(field) for field in fields)

    def _value(self, field: str) -> str:
        return ":" + self.parameters.get(field, field)
