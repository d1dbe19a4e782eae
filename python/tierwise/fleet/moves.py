"""A move of a fleet, as a record."""

from __future__ import annotations

from tierwise.model.placement import Role
from tierwise.results.measurements import Record


class DatabaseMove(Record):
    """One role of one database to a device."""

    database: str
    """Name of the database."""
    role: Role
    device: str
