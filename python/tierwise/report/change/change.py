"""What an advice changes: the roles that move, and the size that each new device needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tierwise.advise import Advice
from tierwise.model.placement import Role

_GIB = 1 << 30


@dataclass(frozen=True)
class Change:
    """The move to a recommended placement.

    Attributes:
        engine: name of the engine.
        moves: new device of each role that moves, also of those taken along.
        needed_bytes: what a device must hold of each recorded role, with headroom and growth.
        rented_gib: size that each new volume is billed for; no entry for other devices.
        owned: new devices that are owned already.
        directory_bytes: what the whole data directory needs; 0 if that is not known.
    """

    engine: str
    moves: Mapping[Role, str]
    needed_bytes: Mapping[Role, float]
    rented_gib: Mapping[str, float]
    owned: frozenset[str]
    directory_bytes: float = 0.0

    @property
    def devices(self) -> dict[str, list[Role]]:
        """Each new device with its roles, log first."""
        found: dict[str, list[Role]] = {}
        for role in Role:
            if role in self.moves:
                found.setdefault(self.moves[role], []).append(role)
        return found

    def size_gib(self, roles: Iterable[Role]) -> int:
        """Size in GiB that holds the files of some roles, rounded up."""
        return in_gib(sum(self.needed_bytes.get(role, 0) for role in roles))

    def device_gib(self, device: str) -> int:
        """Size of a new device in GiB: for its files, and at least what it is billed for."""
        return max(self.size_gib(self.devices[device]), math.ceil(self.rented_gib.get(device, 0.0)))


def in_gib(size_bytes: float) -> int:
    """A size in whole GiB, at least one."""
    return max(math.ceil(size_bytes / _GIB), 1)


def change_of(advice: Advice, room: float = 1.0) -> Change | None:
    """The change that an advice recommends; ``None`` where every file stays where it is.

    Args:
        advice: the advice.
        room: size that a new device needs, as a multiple of the recorded files (:attr:`Terms.room`).
    """
    option = advice.decision.option
    if option.stays:
        return None
    rented = {
        bill.device: part.quantity for bill in option.bills for part in bill.parts if part.what == "size"
    }
    return Change(
        engine=advice.run.engine,
        moves={**option.placement, **option.taken_along},
        needed_bytes={space.role: space.size_bytes * room for space in advice.spaces},
        rented_gib=rented,
        owned=frozenset(advice.have),
        directory_bytes=(advice.run.data_directory_bytes or 0) * room,
    )
