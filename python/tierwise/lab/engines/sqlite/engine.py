"""SQLite as an engine, with separate places for its log, rollback journal and temporary files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tierwise import _core
from tierwise.lab.engines.embedded.embedded_engine import EmbeddedEngine
from tierwise.lab.engines.sqlite.settings import ALLOWED, check_pragma_values
from tierwise.model.placement import Role

_ROLES = {
    "tierwise.db": Role.DATA,
    "tierwise.wal": Role.LOG,
    "tierwise.journal": Role.DOUBLEWRITE,
    "tierwise.shm": Role.SYSTEM,
}
_TEMP = re.compile(r"tierwise-\d+-\d+\.temp( \(deleted\))?")


class SqliteEngine(EmbeddedEngine):
    """SQLite in its own process, compiled into tierwise's own module."""

    roles: ClassVar = frozenset({Role.LOG, Role.DOUBLEWRITE, Role.DATA, Role.TEMP, Role.SYSTEM})
    dialect: ClassVar = "sqlite"
    adapter: ClassVar = "tierwise.lab.engines.sqlite.adapter:SqliteAdapter"
    inside: ClassVar = {Role.INDEX: Role.DATA}
    unsupported: ClassVar = {
        "index": "tables and indexes are in one file",
        "undo": "a rollback journal, which has the role doublewrite, is all the undo there is",
        "archive": "the log is written over once it has been written to the database's file",
    }

    def __init__(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        """Prepare as any embedded engine; settings are PRAGMAs."""
        super().__init__(name, settings)
        check_pragma_values(name, self._given)

    @classmethod
    def allowed_settings(cls) -> frozenset[str]:
        """The PRAGMAs whose values tierwise checks itself."""
        return ALLOWED

    def role_of(self, path: Path) -> Role | None:
        """Role by the file's name."""
        return Role.TEMP if _TEMP.fullmatch(path.name) else _ROLES.get(path.name)

    def failure(self) -> str | None:
        """The last I/O request that a device refused, or the reason why the worker has ended, if any."""
        refused: str | None = self._call("refused") if self.running else None
        return refused or super().failure()

    def version(self) -> str:
        """Version of the library that is compiled in."""
        return _core.sqlite_version()
