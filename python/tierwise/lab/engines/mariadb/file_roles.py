"""Roles of MariaDB's files by name, and table placement in the directory of a role."""

from __future__ import annotations

import re
from pathlib import Path

from tierwise.model.placement import Role

BINLOG = "binlog"
"""Prefix of the binary log's file names."""

DATABASE = "tierwise"
"""The schema that the load's tables are in."""

_ROLE_OF_NAME = (
    (re.compile(r"ib_logfile\d+"), Role.LOG),
    (re.compile(r"undo\d+"), Role.UNDO),
    (re.compile(rf"{BINLOG}\.(\d+|index|state|~rec~)"), Role.ARCHIVE),
    # Temporary tables, and unlinked files: #INODE (deleted), and the names that mkstemp gave them.
    (re.compile(r"ibtmp\d+|#sql-temptable-.*|#\d+|(ib|ML|MY|IO|MT)\w{6}"), Role.TEMP),
)
_TABLE = re.compile(rf".*/{DATABASE}/(?P<name>[^/#]+)(#P#[^/]*|#sql[^/]*)?\.(ibd|MYD|MYI|MAD|MAI)", re.DOTALL)
_REBUILT = re.compile(rf".*/{DATABASE}/#sql[^/]*\.ibd", re.DOTALL)

_CREATE = re.compile(
    r"\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>`(?:[^`]|``)+`|[\w.]+)\s*", re.IGNORECASE
)
_QUOTED_OR_BRACKET = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|[()]", re.DOTALL)


class MariadbFiles:
    """Maps each table to the role of the statement that made it."""

    def __init__(self) -> None:
        """Start empty: every table is data."""
        self._role_of_table: dict[str, Role] = {}

    def note(self, role: Role, sql: str) -> None:
        """Record the role of the table that a statement creates."""
        if made := _CREATE.match(sql):
            name = made["name"].strip("`").rpartition(".")[2]
            self._role_of_table[name.lower()] = Role.DATA if role is Role.INDEX else role

    def role_of(self, path: Path) -> Role | None:
        """Role of a file by its name, in any directory; ``None`` if the name is unknown."""
        whole = str(path).removesuffix(" (deleted)")
        name = whole.rpartition("/")[2]
        for pattern, role in _ROLE_OF_NAME:
            if pattern.fullmatch(name):
                return role
        if table := _TABLE.fullmatch(whole):
            return self._role_of_table.get(table["name"].lower(), Role.DATA)
        return Role.DATA if _REBUILT.fullmatch(whole) else None


def place_table_in_directory(sql: str, directory: Path) -> str:
    """Add a clause to a CREATE TABLE that places its file in ``directory``; keep other statements as is."""
    made = _CREATE.match(sql)
    if made is None:
        return sql
    end = made.end()
    if sql[end : end + 1] == "(":
        end = _closing(sql, end)
    quoted = str(directory).replace("\\", "\\\\").replace("'", "''")
    return f"{sql[:end].rstrip()} DATA DIRECTORY='{quoted}' {sql[end:].lstrip()}".rstrip()


def _closing(sql: str, begin: int) -> int:
    """Index behind the bracket that closes the one at ``begin``."""
    depth = 0
    for token in _QUOTED_OR_BRACKET.finditer(sql, begin):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0 and token.group() == ")":
            return token.end()
    return len(sql)
