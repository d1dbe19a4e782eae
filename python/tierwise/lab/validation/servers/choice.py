"""The database of a case, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from tierwise.lab.validation.servers.base import Database
from tierwise.lab.validation.servers.library import Library
from tierwise.lab.validation.servers.mariadb import MariadbServer
from tierwise.lab.validation.servers.postgres import PostgresServer


def create(
    server: str | None, engine: str, settings: Mapping[str, str], *, binary_log: bool = False
) -> Database:
    """A server by its name, or a library's directories if ``server`` is ``None``."""
    if server == "postgres":
        return PostgresServer(settings)
    if server == "mariadb":
        return MariadbServer(settings, binary_log=binary_log)
    return Library(engine, settings)
