"""Debian's database servers, and database libraries embedded in client programs, on storage under test."""

from __future__ import annotations

from collections.abc import Mapping

from tierwise.lab.validation.servers.case_database import (
    BUFFER_SETTINGS,
    CLIENT,
    CaseDatabase,
    missing_package,
    placeable_roles,
)
from tierwise.lab.validation.servers.embedded_library import EmbeddedLibrary
from tierwise.lab.validation.servers.mariadb import DebianMariadb
from tierwise.lab.validation.servers.postgres import DebianPostgres

__all__ = [
    "BUFFER_SETTINGS",
    "CLIENT",
    "CaseDatabase",
    "check_server_settings",
    "create_database",
    "missing_package",
    "placeable_roles",
]


def check_server_settings(server: str, settings: Mapping[str, str]) -> None:
    """Check the settings of a server before anything is made."""
    kind = DebianPostgres if server == "postgres" else DebianMariadb
    kind.check_settings(settings)


def create_database(
    server: str | None, engine: str, settings: Mapping[str, str], *, binary_log: bool = False
) -> CaseDatabase:
    """A server by its name, or a library's directories if ``server`` is ``None``."""
    if server == "postgres":
        return DebianPostgres(settings)
    if server == "mariadb":
        return DebianMariadb(settings, binary_log=binary_log)
    return EmbeddedLibrary(engine, settings)
