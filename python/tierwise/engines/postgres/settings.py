"""The settings of a PostgreSQL server: from the study, from the limits, and tierwise's own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tierwise.engines.base import Limits
from tierwise.engines.postgres.files import ARCHIVED
from tierwise.model.errors import TierwiseError

_DEFAULT_WORKERS = 8
"""Default of max_worker_processes and max_parallel_workers."""
_DEFAULT_CONNECTIONS = 100
_OWN_CONNECTIONS = 20
"""Connections for the control session, samplers, loaders and the server's superuser reserve."""


@dataclass(frozen=True)
class PostgresSettings:
    """The study's settings, with tierwise's own settings taken out."""

    server: Mapping[str, str]
    log_members: int
    """2: a second log member on the log's device; a commit waits for both."""
    segment_mib: int | None
    """Size of a log segment, fixed when the database is made."""

    @classmethod
    def split(cls, name: str, settings: Mapping[str, str]) -> PostgresSettings:
        """Take out what the server does not know, and check its values.

        Args:
            name: of the engine, for messages.
            settings: those that a study may give.

        Raises:
            TierwiseError: naming the setting.
        """
        server = dict(settings)
        members = server.pop("log_members", "1")
        if members not in ("1", "2"):
            raise TierwiseError(f"engine {name}: setting log_members is {members!r}", "use 1 or 2")
        return cls(server, int(members), _segment_mib(name, server.pop("wal_segment_size", None)))


def _segment_mib(name: str, size: str | None) -> int | None:
    if size is None:
        return None
    match = re.fullmatch(r"(\d+)\s*MB", size)
    mib = int(match[1]) if match else 0
    if mib not in {1 << power for power in range(11)}:
        raise TierwiseError(
            f"engine {name}: setting wal_segment_size is {size!r}", "use a power of two from 1MB to 1024MB"
        )
    return mib


def for_limits(limits: Limits) -> dict[str, str]:
    """Settings that follow from limits.

    A quarter of the memory for shared_buffers is what the manual recommends (section 19.4.1); the planner
    assumes a cache of three quarters. Parallelism counts the leader, so 1 means a query without workers.
    """
    found = {}
    if limits.memory_bytes is not None:
        found["shared_buffers"] = f"{max(limits.memory_bytes // 4 >> 10, 128)}kB"
        found["effective_cache_size"] = f"{max(limits.memory_bytes * 3 // 4 >> 10, 128)}kB"
    if limits.parallelism is not None:
        helpers = limits.parallelism - 1
        found["max_parallel_workers_per_gather"] = str(helpers)
        found["max_parallel_maintenance_workers"] = str(helpers)
        found["max_parallel_workers"] = str(max(_DEFAULT_WORKERS, helpers))
        found["max_worker_processes"] = str(max(_DEFAULT_WORKERS, helpers))
    if limits.sessions is not None:
        found["max_connections"] = str(max(_DEFAULT_CONNECTIONS, limits.sessions + _OWN_CONNECTIONS))
    return found


def for_archive(directory: Path) -> dict[str, str]:
    """Settings that copy each full segment to a directory and flush it there."""
    target = shlex.quote(str(directory)).replace("%", "%%")
    copy = f"dd if=%p of={target}/%f{ARCHIVED}.part bs=1M conv=fsync status=none"
    rename = f"mv {target}/%f{ARCHIVED}.part {target}/%f{ARCHIVED}"
    return {"archive_mode": "on", "archive_command": f"{copy} && {rename}"}
