"""DuckDB in the process of the test, with a table `item`."""

from __future__ import annotations

from pathlib import Path

from support.embedded_adapter import open_in
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.duckdb.adapter import DuckDbAdapter
from tierwise.model.placement import Role

ITEM = "CREATE TABLE item (id BIGINT, body VARCHAR, weight DOUBLE)"
INSERT = "INSERT INTO item VALUES (?, ?, 0.5)"


def opened(
    directory: Path, settings: dict[str, str] | None = None, limits: ResourceLimits | None = None
) -> DuckDbAdapter:
    roles = (Role.DATA, Role.TEMP, Role.SYSTEM)
    return open_in(DuckDbAdapter(), directory, roles, settings, limits or ResourceLimits())
