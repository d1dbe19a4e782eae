"""RocksDB in the process of the test, with an object `pilot`."""

from __future__ import annotations

from pathlib import Path

from support.embedded_adapter import open_in
from tierwise.lab.engines.base import ResourceLimits
from tierwise.lab.engines.rocksdb.adapter import RocksAdapter
from tierwise.model.placement import Role

PILOT = "OBJECT pilot KEY id FIELDS (id integer, name text, points integer) INDEXES (name, points)"
INSERT = "INSERT pilot (id, name, points) VALUES (:id, :name, :points)"


def opened(
    directory: Path, settings: dict[str, str] | None = None, memory: int | None = None
) -> RocksAdapter:
    roles = (Role.LOG, Role.DATA, Role.SYSTEM)
    return open_in(RocksAdapter(), directory, roles, settings, ResourceLimits(memory_bytes=memory))
