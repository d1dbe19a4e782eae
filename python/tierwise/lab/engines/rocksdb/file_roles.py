"""RocksDB's files by name: their roles, and the options file."""

from __future__ import annotations

import re
from pathlib import Path

from tierwise.model.placement import Role

_ROLES = (
    (re.compile(r"\d{6,}\.log"), Role.LOG),
    (re.compile(r"\d{6,}\.(sst|blob)"), Role.DATA),
    (
        re.compile(r"(MANIFEST|OPTIONS)-\d+|CURRENT|IDENTITY|LOCK|rocksdict-config\.json|.*\.dbtmp"),
        Role.SYSTEM,
    ),
)
NAMED_OPTIONS = "options"
"""Folder in the worker's home with the file from which RocksDB reads options by name."""
_OPTIONS = "OPTIONS-??????"
_OPTION = re.compile(r"(?m)^  (\w+)=(.*)$")


def rocksdb_file_role(path: Path) -> Role | None:
    """Role of a file by its name; a log has a number before its common suffix."""
    if path.parent.name == NAMED_OPTIONS:
        return None
    return next((role for pattern, role in _ROLES if pattern.fullmatch(path.name)), None)


def newest_options_file(database: Path) -> Path:
    """The options file of the database's last opening."""
    return max(database.glob(_OPTIONS))


def has_options_file(database: Path) -> bool:
    """Whether there is such a file; a repair makes none."""
    return any(database.glob(_OPTIONS))


def read_options_file(database: Path) -> dict[str, str]:
    """Every option in that file, and the version of RocksDB that wrote it."""
    return dict(_OPTION.findall(newest_options_file(database).read_text()))
