"""Undoes what dead owners left behind: tracing, processes, emulated disks, directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tierwise.errors import TierwiseError
from tierwise.host import ledger, memory_limit, mounts, processes, tracing
from tierwise.host.disk_teardown import take_down


def clean() -> list[str]:
    """Undo every entry of the ledger whose owner is dead; give one line for each.

    Processes end first, since they use the disks; directories go last, since disks may be mounted in them.
    Safe to call at any time, also by several processes at once. What has no entry is never touched.

    Raises:
        TierwiseError: naming what could not be undone and why, after everything else was undone.
    """
    done: list[str] = []
    failures: list[TierwiseError] = []
    with ledger.locked():
        for kind, undo in _UNDO.items():
            for entry in ledger.entries(kind):
                if not entry.owner.alive:
                    try:
                        undo(entry)
                        done.append(f"{kind} {entry.name}")
                    except TierwiseError as error:
                        failures.append(error)
    if failures:
        raise failures[0]
    return done


def _remove_directory(entry: ledger.Entry) -> None:
    path = Path(entry.facts["path"])
    mounted = next((mount for mount in mounts.mounts() if mount.point.is_relative_to(path)), None)
    if mounted is not None:
        raise TierwiseError(f"{path}: {mounted.source} is mounted in it", f"umount {mounted.point}")
    shutil.rmtree(path, ignore_errors=True)
    entry.remove()


_UNDO: dict[ledger.Kind, Callable[[ledger.Entry], None]] = {
    "tracing": tracing.undo,
    "process": processes.end,
    "limit": memory_limit.remove,
    "disk": take_down,
    "directory": _remove_directory,
}
