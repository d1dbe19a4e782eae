"""Block devices as sysfs would show them, in a directory of the test's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


class FakeSysfs:
    """A tree like /sys, with the tables of device-mapper beside it."""

    def __init__(self, root: Path) -> None:
        """Without a device yet."""
        self.root = root
        self.tables: dict[str, str] = {}
        (root / "dev/block").mkdir(parents=True)

    def disk(self, name: str, number: tuple[int, int], sectors: int, **files: str) -> Path:
        """A disk whose requests the kernel tells."""
        told = {"queue/rotational": "1", "queue/write_cache": "write back", **files}
        folder = self._add(self.root / "devices" / name, number, sectors, told)
        (folder / "mq").mkdir()
        return folder

    def partition(self, disk: Path, name: str, number: tuple[int, int], start: int, sectors: int) -> Path:
        """A part of a disk."""
        return self._add(disk / name, number, sectors, {"partition": "1", "start": str(start)})

    def volume(
        self,
        name: str,
        number: tuple[int, int],
        sectors: int,
        below: Sequence[Path],
        table: str | None = None,
        **files: str,
    ) -> Path:
        """A device that stands on others, with its device-mapper table if it has one."""
        told = {"queue/write_cache": "write back", **files}
        folder = self._add(self.root / "devices/virtual" / name, number, sectors, told)
        (folder / "slaves").mkdir()
        for device in below:
            (folder / "slaves" / device.name).symlink_to(os.path.relpath(device, folder / "slaves"))
        if table is not None:
            self.tables["{}:{}".format(*number)] = table
        return folder

    def table(self, number: str) -> str:
        """What ``dmsetup table`` would print."""
        return self.tables[number]

    def _add(self, folder: Path, number: tuple[int, int], sectors: int, files: dict[str, str]) -> Path:
        shown = "{}:{}".format(*number)
        for name, text in {"dev": shown, "size": str(sectors), **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{text}\n")
        link = self.root / "dev/block" / shown
        link.symlink_to(os.path.relpath(folder, link.parent))
        return folder
