"""Slows the log during a burst, so that a recording shows the work at two speeds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from tierwise.capture.devices import Devices
from tierwise.host import ledger
from tierwise.host.disk.disk import EmulatedDisk
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role

_ADDED_US = 4000.0
"""Added time per flush: about half a revolution of a disk."""
_MOST_FACTOR = 1e5
_AT_MOST_LATE_S = 30.0
"""Largest delay of a burst on a busy machine; the burst's end also ends the slow phase."""
_SETTLES_S = 0.2
"""Time in which requests at the old speed complete."""


@dataclass
class SlowLog:
    """The emulated disk that holds the log; other files on it are slowed too."""

    disk: EmulatedDisk
    partition: str

    @classmethod
    def of(cls, devices: Devices) -> Self:
        """Find the disk.

        Raises:
            TierwiseError: if the log is on no emulated disk.
        """
        logs = {f"/dev/{device.name}" for device in devices.known if Role.LOG in device.roles}
        for entry in ledger.entries("disk"):
            for part in entry.facts["partitions"]:
                if part["loop"] in logs:
                    return cls(EmulatedDisk.find(entry.name), part["name"])
        raise TierwiseError("--two-speed: the log is on no emulated disk", "leave the option out")

    def begin(self, seconds: float) -> float:
        """Slow the disk for a time; gives the added time per flush, in µs; 0 before the first flush."""
        flush = self.disk.stats().partitions[self.partition].flush_latency
        if flush is None or flush.mean_us <= 0:
            return 0.0
        factor = min(1 + _ADDED_US / flush.mean_us, _MOST_FACTOR)
        self.disk.slow(factor, seconds + _AT_MOST_LATE_S)
        time.sleep(_SETTLES_S)
        return (factor - 1) * flush.mean_us

    def end(self) -> None:
        """Restore the disk's own speed."""
        self.disk.slow(1, 0)
