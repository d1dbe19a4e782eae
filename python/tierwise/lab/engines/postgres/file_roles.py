"""Roles of PostgreSQL's files, by name and by the catalogue."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tierwise.model.placement import Role

ARCHIVED = ".archived"
"""Suffix of an archived segment, whose name is otherwise that of the segment in the log."""

_FIRST_USER_OID = 16384
"""FirstNormalObjectId of access/transam.h: the catalogue's own relations have lower numbers."""

_LOG = re.compile(
    r"xlogtemp\.\d+|[0-9A-F]{8}\.history(\.\w+)?"
    r"|[0-9A-F]{24}(\.(partial|ready|done|[0-9A-F]{8}\.backup(\.\w+)?))?|[0-9A-F]{40}\.summary"
)
_RELATION = re.compile(
    r".*/(PG_\d+_\d+|base)/\d+/(?P<temp>t\d+_)?(?P<number>\d+)(_(fsm|vm|init))?(\.\d+)?", re.DOTALL
)


class PostgresFiles:
    """Maps each relation to the schema statement that made it, and its files to a role, in any directory."""

    def __init__(self, query: Callable[[str], list[Any]]) -> None:
        self._query = query
        self._role_of_oid: dict[int, Role] = {}
        self._role_of_number: dict[int, Role] = {}
        self._last_oid = _FIRST_USER_OID - 1
        self._making = False

    @contextlib.contextmanager
    def making(self, role: Role) -> Iterator[None]:
        """Give this role to all relations that are new in the catalogue at the end."""
        self._making = True
        try:
            yield
            new = [
                oid
                for (oid,) in self._query(f"SELECT oid FROM pg_catalog.pg_class WHERE oid > {self._last_oid}")
            ]
            self._role_of_oid.update(dict.fromkeys(new, role))
            self._last_oid = max([self._last_oid, *new])
        finally:
            self._making = False

    def refresh(self) -> None:
        """Read the current file numbers: TRUNCATE, REINDEX and similar statements change them."""
        rows = self._query(
            "SELECT oid, pg_catalog.pg_relation_filenode(oid) FROM pg_catalog.pg_class "
            f"WHERE oid >= {_FIRST_USER_OID}"
        )
        # Another thread may be making the relation; check this only after reading the catalogue.
        unsure = self._making
        for oid, number in rows:
            role = self._role_of_oid.get(oid)
            if role is not None or not unsure:
                self._role_of_number[number] = role or Role.DATA

    def role_of(self, path: Path, *, up: bool) -> Role | None:
        """Role of a file; ``None`` if its name is unknown, or its relation is not known yet.

        Args:
            up: whether the server can be asked.
        """
        whole = str(path).removesuffix(" (deleted)")
        name = whole.rpartition("/")[2]
        if ARCHIVED in name:
            return Role.ARCHIVE
        if _LOG.fullmatch(name):
            return Role.LOG
        if "/pgsql_tmp" in whole:
            return Role.TEMP
        relation = _RELATION.fullmatch(whole)
        if relation is None:
            return None
        return Role.TEMP if relation["temp"] else self._role_of_relation(int(relation["number"]), up)

    @staticmethod
    def is_relation(path: Path) -> bool:
        """Whether the file belongs to a table or an index."""
        return _RELATION.fullmatch(str(path).removesuffix(" (deleted)")) is not None

    def _role_of_relation(self, number: int, up: bool) -> Role | None:
        if number < _FIRST_USER_OID:
            return Role.SYSTEM
        if number not in self._role_of_number and up:
            self.refresh()
        return self._role_of_number.get(number)
