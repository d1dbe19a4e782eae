"""Empties the caches of partitions of emulated disks: file system, inodes and the device's buffers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from tierwise.host import ledger, loop, mounts

Partition = Mapping[str, Any]
"""Facts of a partition in the ledger."""


def own_partitions(devices: Collection[int]) -> dict[int, Partition]:
    """Partitions of disks that this process brought up, by device number, of those numbers.

    The file system of any other disk belongs to the user, who may have made it with ``tierwise disk up``.
    """
    mine = ledger.Identity.mine()
    found = {
        os.makedev(*loop.number(Path(part["loop"]))): part
        for entry in ledger.entries("disk")
        if entry.owner == mine
        for part in entry.facts["partitions"]
    }
    return {device: part for device, part in found.items() if device in devices}


def remount(partition: Partition) -> None:
    """Unmount a partition and mount it again: the kernel keeps no page, inode or directory entry of it.

    Raises:
        TierwiseError: if it is in use, naming the users; it stays mounted, and stays warm.
        HostError: if it cannot be mounted again.
    """
    point, device = Path(partition["mount"]), Path(partition["loop"])
    mounts.unmount(point)
    try:
        loop.drop_buffers(device, unused=True)
    finally:
        mounts.mount(device, point, partition["file_system"])


def drop_metadata(partitions: Iterable[Partition]) -> None:
    """Drop the file system's metadata from the buffers of mounted partitions."""
    for partition in partitions:
        loop.drop_buffers(Path(partition["loop"]))
