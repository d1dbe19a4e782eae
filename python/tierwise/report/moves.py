"""Roles that a placement moves from the baseline, and their description in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tierwise.model.placement import Role
from tierwise.results import DeviceInfo, RunResult

ROLE_NAMES = {
    Role.LOG: "the log",
    Role.DOUBLEWRITE: "the doublewrite area",
    Role.DATA: "the data",
    Role.INDEX: "the indexes",
    Role.SELECTED: "the selected tables",
    Role.UNDO: "the undo",
    Role.TEMP: "the temporary files",
    Role.SYSTEM: "the system files",
    Role.ARCHIVE: "the archive",
}
_KIND_NAMES = {
    "hdd": "a hard disk",
    "ssd": "an SSD",
    "ram": "RAM",
    "array": "an array",
    "volume": "a cloud volume",
    "real": "the device",
}
_SSD_NAMES = {
    "nvme": "an NVMe SSD",
    "optane": "an Optane SSD",
    "pcie": "a PCIe SSD",
    "sata": "a SATA SSD",
    "dram": "a DRAM SSD",
}
"""Word in the name of an SSD's profile -> what it is."""

Moved = dict[str, list[Role]]
"""Device -> roles that the baseline keeps elsewhere."""


def moved_roles(run: RunResult, baseline: RunResult) -> Moved:
    """Roles on another device than in the baseline, by their new device.

    Two names for one directory of a real device are the same device.
    """
    here, there = _identities(run), _identities(baseline)
    moved: Moved = {}
    for role, device in run.role_devices.items():
        before = baseline.role_devices.get(role)
        if before is not None and here.get(device, device) != there.get(before, before):
            moved.setdefault(device, []).append(role)
    return moved


def roles_of(moved: Moved) -> set[Role]:
    """All roles that moved, to any device."""
    return {role for roles in moved.values() for role in roles}


def join(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


class PlacementPhraser:
    """Describes placements of one comparison in words.

    Args:
        devices: every device in the comparison.
        all_roles: every role that the engine placed.
    """

    def __init__(self, devices: Iterable[DeviceInfo], all_roles: set[Role]) -> None:
        self._devices = {device.name: device for device in devices}
        self._all = all_roles

    def what(self, moved: Moved) -> str:
        """The files that moved: ``the log``, ``everything``."""
        roles = roles_of(moved)
        if len(roles) > 1 and roles == self._all:
            return "everything"
        return join([ROLE_NAMES[role] for role in Role if role in roles])

    def rest(self, moved: Moved, more: set[Role]) -> str:
        """The remaining roles after some roles of ``moved``: ``everything else``, ``the data``."""
        if roles_of(moved) == self._all:
            return "everything else"
        return join([ROLE_NAMES[role] for role in Role if role in more])

    def moving(self, placement: str, moved: Moved, targets: bool = True) -> str:
        """``moving the log to an SSD (ssd-nvme-dc)``; the placement's name where nothing moved."""
        if not moved:
            return f"placement {placement}"
        if not targets or (len(moved) > 1 and roles_of(moved) == self._all):
            return f"moving {self.what(moved)}"
        return "moving " + join(
            [f"{self.what({device: roles})} to {self._device(device)}" for device, roles in moved.items()]
        )

    def _device(self, name: str) -> str:
        """What the device is, and its profile or directory."""
        device = self._devices.get(name)
        if device is None or device.kind not in _KIND_NAMES:
            return name
        model = device.profile or device.path or ""
        kind, *words = model.split("-")
        ssd = next((_SSD_NAMES[word] for word in words if kind == "ssd" and word in _SSD_NAMES), None)
        return (ssd or _KIND_NAMES[device.kind]) + (f" ({model})" if model else "")


def _identities(run: RunResult) -> dict[str, str]:
    return {d.name: d.path for d in run.devices if d.kind == "real" and d.path}
