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
