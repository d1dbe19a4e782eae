"""Monthly cost of a placement: rent by the size of the files, a purchase in full, spread over five years.

The storage of the recorded run costs nothing more, and leaving it saves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.predict import RECORDED, resolve


class Costs:
    """Prices of placements of files of known sizes.

    Args:
        footprints: bytes of the files of each role.
    """

    def __init__(self, footprints: Mapping[Role, int]) -> None:
        """Store the sizes."""
        self._footprints = footprints

    def size_bytes(self, placement: Mapping[Role, str]) -> dict[str, int]:
        """Bytes that each new device has to hold."""
        sizes: dict[str, int] = {}
        for role, device in placement.items():
            if device != RECORDED:
                sizes[device] = sizes.get(device, 0) + self._footprints.get(role, 0)
        return sizes

    def usd_per_month(self, placement: Mapping[Role, str]) -> float:
        """Price of the devices that a placement adds to the recorded ones.

        Raises:
            TierwiseError: a device without a price.
        """
        return sum(_price(device, size) for device, size in self.size_bytes(placement).items())


def _price(device: str, size_bytes: int) -> float:
    usd = resolve(device).profile.usd_per_month(size_bytes)
    if usd is None:
        raise TierwiseError(
            f"device {device} has no price",
            "name another, or give its profile a [price] in a file of your own",
        )
    return usd
