"""Debian's database servers, and database libraries embedded in client programs, on storage under test."""

from tierwise.lab.validation.servers.base import (
    BUFFER_SETTINGS,
    CLIENT,
    DATABASE,
    Database,
    Server,
    missing,
    roles_of,
)
from tierwise.lab.validation.servers.choice import create

__all__ = ["BUFFER_SETTINGS", "CLIENT", "DATABASE", "Database", "Server", "create", "missing", "roles_of"]
