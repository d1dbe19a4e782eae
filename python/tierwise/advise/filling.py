"""When a device is full, if files on it grow without limit."""

from __future__ import annotations

from collections.abc import Mapping

from tierwise.advise.option import Option
from tierwise.advise.space import RoleSpace
from tierwise.model.placement import Role
from tierwise.predict import resolve
from tierwise.results.measurements import Record

_GIB = 1 << 30


class Filling(Record):
    """Files of a role that may grow until their new device is full."""

    role: Role
    device: str
    when: str
    """As ``if archiving stops``."""
    free_bytes: int
    """Of the device, beside what it must hold."""
    full_after_s: float
    """At the predicted rate of work."""


def filling(option: Option, spaces: Mapping[Role, RoleSpace]) -> list[Filling]:
    """Each role of a placement whose files may grow without limit.

    Args:
        option: the placement, with its predicted rate.
        spaces: of each role.
    """
    speedup = option.prediction.speedup
    faster = speedup.value if speedup else 1.0
    filling = []
    for role, device in {**option.placement, **option.taken_along}.items():
        space = spaces.get(role)
        if space is None or not space.unlimited or space.grows_bytes_per_s <= 0:
            continue
        free_bytes = max(_capacity_bytes(option, device) - option.size_bytes[device], 0)
        free_bytes += space.size_bytes - space.now_bytes
        filling.append(
            Filling(
                role=role,
                device=device,
                when=space.unlimited,
                free_bytes=free_bytes,
                full_after_s=free_bytes / (space.grows_bytes_per_s * faster),
            )
        )
    return filling


def _capacity_bytes(option: Option, device: str) -> int:
    """What is rented of a volume that is billed by size; the capacity of any other device."""
    parts = [part for bill in option.bills if bill.device == device for part in bill.parts]
    rented = next((part.quantity for part in parts if part.what == "size"), None)
    return resolve(device).profile.capacity_bytes if rented is None else int(rented * _GIB)
