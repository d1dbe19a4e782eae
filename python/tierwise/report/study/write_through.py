"""Settings that make an engine write its log with FUA, which the path of an emulated disk does not have.

Source: PostgreSQL documentation, ``wal_sync_method``; MariaDB documentation, ``innodb_flush_method``. Linux
splits a write with FUA into a write and a flush for a device without FUA, as a loop device is
(block/blk-flush.c).
"""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.placement import Role
from tierwise.results import RunResult

_WRITE_THROUGH = {
    "wal_sync_method": ("open_datasync", "open_sync"),
    "innodb_flush_method": ("O_DSYNC",),
    "innodb_log_file_write_through": ("ON",),
}


def write_through_caveats(runs: Sequence[RunResult]) -> list[str]:
    """A sentence if the log of a run was written with FUA on an emulated device."""
    found = {
        f"{name} = {run.engine.settings[name]}"
        for run in runs
        for name, values in _WRITE_THROUGH.items()
        if run.engine.settings.get(name) in values
        and any(Role.LOG in device.roles and device.profile for device in run.devices)
    }
    return [
        f"With {setting}, each write of the log carries FUA. An emulated disk gets a write and a flush in "
        "its place, so that a device that honours FUA is faster than shown."
        for setting in sorted(found)
    ]
