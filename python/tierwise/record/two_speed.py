"""A log that is slowed for the time of a burst, so that a recording shows the work at two speeds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from tierwise.errors import TierwiseError
from tierwise.host import ledger
from tierwise.host.disk import EmulatedDisk
from tierwise.record.devices import Devices
from tierwise.roles import Role

_FACTOR = 3.0
_SETTLES_S = 0.2
"""What was under way at the old speed is over by then."""


@dataclass
class SlowLog:
    """The emulated disk that the log is on."""

    disk: EmulatedDisk
    _usual_us: float = 0.0

    @classmethod
    def of(cls, devices: Devices) -> Self:
        """Find it.

        Raises:
            TierwiseError: if the log is on no emulated disk.
        """
        for device in devices.known:
            for entry in ledger.entries("disk"):
                loops = [part["loop"] for part in entry.facts["partitions"]]
                if Role.LOG in device.roles and f"/dev/{device.name}" in loops:
                    return cls(EmulatedDisk.find(entry.name))
        raise TierwiseError("--two-speed: the log is on no emulated disk", "leave the option out")

    def begin(self, seconds: float) -> float:
        """Slow the disk for a time; gives by how much a flush takes longer, in µs, as far as is known."""
        self.disk.slow(_FACTOR, seconds + _SETTLES_S)
        time.sleep(_SETTLES_S)
        return 0.0

    def end(self) -> None:
        """Back to the disk's own speed."""
        self.disk.slow(1, 0)
