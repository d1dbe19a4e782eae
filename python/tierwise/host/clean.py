"""Undoes what dead owners left behind: processes, emulated disks, directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tierwise.host import cgroups, ledger, processes
from tierwise.host.disk.disk_teardown import take_down_disk
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback


class Cleanup(BaseModel):
    """What was cleaned up, or would be."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    dry_run: bool
    """Whether nothing was removed."""
    entries: list[str]
    """Kind and name of each entry of the ledger, such as `disk log-ssd`."""


def pending_cleanup() -> list[str]:
    """What :func:`clean` would undo, a line each."""
    with ledger.hold_lock():
        entries = [entry for kind in _UNDO for entry in ledger.entries(kind) if not entry.owner.alive]
    return [f"{entry.kind} {entry.name}" for entry in entries]


def clean() -> list[str]:
    """Undo every entry of the ledger whose owner is dead; give one line for each.

    Processes end first, since they use the disks; directories go last, since disks may be mounted in them.
    Safe to call at any time, also by several processes at once. What has no entry is never touched.

    Raises:
        TierwiseError: naming what could not be undone and why, after everything else was undone.
    """
    done: list[str] = []
    with ledger.hold_lock():
        ledger.remove_drafts()
        failures = ledger.damaged_entries()
        for kind, undo in _UNDO.items():
            for entry in ledger.entries(kind):
                if not entry.owner.alive:
                    try:
                        undo(entry)
                        done.append(f"{kind} {entry.name}")
                    except TierwiseError as error:
                        failures.append(error)
                    except (KeyError, TypeError, ValueError) as error:
                        damaged = f"{entry.path}: damaged entry of the ledger ({error})"
                        failures.append(TierwiseError(damaged, f"rm {entry.path}"))
    if failures:
        raise failures[0]
    return done


def clean_before_operation(warn: ProgressCallback) -> list[str]:
    """Run :func:`clean` before another operation; report a failure and continue."""
    try:
        return clean()
    except TierwiseError as error:
        warn(f"not cleaned up: {error}")
        return []


def _remove_directory(entry: ledger.LedgerEntry) -> None:
    path = Path(entry.facts["path"])
    if path.name != entry.name:
        raise TierwiseError(
            f"{path} is not what tierwise made as {entry.name}", f"rm {entry.path}, if you know what that was"
        )
    ledger.remove_directory(entry)


_UNDO: dict[ledger.Kind, Callable[[ledger.LedgerEntry], None]] = {
    "process": processes.end,
    "limit": cgroups.remove,
    "disk": take_down_disk,
    "directory": _remove_directory,
}
