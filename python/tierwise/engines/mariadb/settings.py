"""The settings of a MariaDB server: from the study, from the limits, and for file placement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tierwise.engines.base import Limits
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

BINLOG = "binlog"
"""Prefix of the binary log's file names."""

_BESIDES_POOL_MIB = 80
"""Measured with 10.11: at most 60 MB with 20 sessions and a load; the rest is for cached file pages."""
_SMALLEST_POOL_MIB = 16
_DEFAULT_CONNECTIONS = 151
_OWN_CONNECTIONS = 20
"""Connections for the control session, samplers and loaders."""

_ALWAYS = {
    # A server that dumps its buffer pool and reloads it never starts cold.
    "innodb_buffer_pool_dump_at_shutdown": "0",
    "innodb_buffer_pool_load_at_startup": "0",
    "skip_networking": "1",
    "skip_name_resolve": "1",
    # These metrics count commits.
    "innodb_monitor_enable": "trx_%",
}


def for_limits(name: str, limits: Limits) -> dict[str, str]:
    """Settings that follow from limits.

    Raises:
        TierwiseError: if there is too little memory for the server to run at all.
    """
    found = {}
    if limits.sessions is not None:
        found["max_connections"] = str(max(_DEFAULT_CONNECTIONS, limits.sessions + _OWN_CONNECTIONS))
    if limits.memory_bytes is not None:
        found |= _for_memory(name, limits.memory_bytes)
    return found


def _for_memory(name: str, memory_bytes: int) -> dict[str, str]:
    """Half of the memory for the buffer pool, or what :data:`_BESIDES_POOL_MIB` leaves if that is less.

    The caches of engines other than InnoDB, and the log buffer, are limited to the remainder.
    """
    memory_mib = memory_bytes >> 20
    pool_mib = min(memory_mib // 2, memory_mib - _BESIDES_POOL_MIB)
    if pool_mib < _SMALLEST_POOL_MIB:
        least_mib = _SMALLEST_POOL_MIB + _BESIDES_POOL_MIB
        raise TierwiseError(f"engine {name} cannot run in {memory_mib}M of memory", f"give it {least_mib}M")
    return {
        "innodb_buffer_pool_size": f"{pool_mib}M",
        "innodb_log_buffer_size": f"{min(16, max(2, memory_mib // 32))}M",
        "aria_pagecache_buffer_size": f"{min(128, max(4, memory_mib // 16))}M",
        "key_buffer_size": "1M",
    }


def for_places(directories: Mapping[Role, Path], temp: Path, socket: Path) -> dict[str, str]:
    """Settings that put each role's files in its directory; the system's is the data directory.

    Args:
        temp: directory of temporary files; beside the system's if the role has none of its own.
    """
    # InnoDB resolves paths relative to the data directory.
    way = os.path.relpath(temp, directories[Role.SYSTEM])
    placed = {
        **_ALWAYS,
        "socket": str(socket),
        "tmpdir": str(temp),
        "innodb_temp_data_file_path": f"{way}/ibtmp1:12M:autoextend",
    }
    if Role.LOG in directories:
        placed["innodb_log_group_home_dir"] = str(directories[Role.LOG])
    if Role.UNDO in directories:
        placed["innodb_undo_directory"] = str(directories[Role.UNDO])
    if Role.ARCHIVE in directories:
        placed["log_bin"] = str(directories[Role.ARCHIVE] / BINLOG)
    return placed


def defaults_for(directories: Mapping[Role, Path]) -> dict[str, str]:
    """Defaults that a placement needs besides directories, unless the study overrides them."""
    found = {}
    if Role.UNDO in directories:
        # Without separate undo tablespaces, the default, undo lies in the system tablespace.
        found["innodb_undo_tablespaces"] = "3"
    if Role.ARCHIVE in directories:
        found["sync_binlog"] = "1"
        # Without it, only a superuser may make functions and triggers, for the sake of replicas.
        found["log_bin_trust_function_creators"] = "1"
    return found
