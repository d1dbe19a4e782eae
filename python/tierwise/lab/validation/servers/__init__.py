"""Debian's database servers, and database libraries embedded in client programs, on storage under test."""

from __future__ import annotations

from collections.abc import Mapping

from tierwise.lab.validation.servers.base import BUFFER_SETTINGS, CLIENT, Database, missing, roles_of
from tierwise.lab.validation.servers.library import Library
from tierwise.lab.validation.servers.mariadb import MariadbServer
from tierwise.lab.validation.servers.postgres import PostgresServer

__all__ = ["BUFFER_SETTINGS", "CLIENT", "Database", "check_settings", "create", "missing", "roles_of"]


def check_settings(server: str, settings: Mapping[str, str]) -> None:
    """Check the settings of a server before anything is made."""
    kind = PostgresServer if server == "postgres" else MariadbServer
    kind.check_settings(settings)


def create(
    server: str | None, engine: str, settings: Mapping[str, str], *, binary_log: bool = False
) -> Database:
    """A server by its name, or a library's directories if ``server`` is ``None``."""
    if server == "postgres":
        return PostgresServer(settings)
    if server == "mariadb":
        return MariadbServer(settings, binary_log=binary_log)
    return Library(engine, settings)
