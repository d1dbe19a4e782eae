"""What a database file is for."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The roles that a placement maps to devices."""

    LOG = "log"
    """Write-ahead log, redo log, logical log."""
    DOUBLEWRITE = "doublewrite"
    """Physical log, rollback journal."""
    DATA = "data"
    """Tables."""
    INDEX = "index"
    """Indexes."""
    UNDO = "undo"
    """Undo or rollback segments."""
    TEMP = "temp"
    """Sorts, hash joins and temporary tables that spill."""
    SYSTEM = "system"
    """Catalogue, control files and files of no other role."""
    ARCHIVE = "archive"
    """Archived log, binary log."""
    SELECTED = "selected"
    """Tables and indexes that a question places apart from the others; no file is recorded with it."""


ROLES_OF_FILES = tuple(role for role in Role if role is not Role.SELECTED)
"""Those that files of a database can have."""
SYNONYMS: dict[str, str] = {
    **dict.fromkeys(("wal", "pg_wal", "pg_xlog", "xlog", "redo", "journal", "logs", "iblog"), Role.LOG.value),
    **dict.fromkeys(("binlog", "archives", "archivelog"), Role.ARCHIVE.value),
    **dict.fromkeys(("table", "tables", "heap", "tablespace", "datafiles"), Role.DATA.value),
    **dict.fromkeys(("indexes", "indices", "idx"), Role.INDEX.value),
    **dict.fromkeys(("tmp", "sort", "temporary", "pgsql_tmp"), Role.TEMP.value),
    **dict.fromkeys(("rollback", "undologs"), Role.UNDO.value),
    **dict.fromkeys(("dblwr", "double-write", "double_write"), Role.DOUBLEWRITE.value),
    "catalog": Role.SYSTEM.value,
}
"""What engines call a role -> its name."""
