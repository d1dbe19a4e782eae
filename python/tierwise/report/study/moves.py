"""What a placement moves, seen from the baseline, and how to say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tierwise.model.roles import Role
from tierwise.results import RunResult

ROLE_NAMES = {
    Role.LOG: "the log",
    Role.DOUBLEWRITE: "the doublewrite area",
    Role.DATA: "the data",
    Role.INDEX: "the indexes",
    Role.UNDO: "the undo",
    Role.TEMP: "the temporary files",
    Role.SYSTEM: "the system files",
    Role.ARCHIVE: "the archive",
}
_KIND_NAMES = {
    "hdd": "the hard disk",
    "ssd": "the SSD",
    "ram": "RAM",
    "array": "the array",
    "volume": "the volume",
}

Moved = dict[str, list[Role]]
"""Device -> roles that the baseline keeps elsewhere."""


def moved_roles(run: RunResult, baseline: RunResult) -> Moved:
    """Roles that lie on another device than in the baseline, by the device that they moved to.

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
    """All roles that moved, wherever to."""
    return {role for roles in moved.values() for role in roles}


def join(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


class PlacementPhraser:
    """Puts placements of one comparison into words.

    Args:
        kinds: device name -> kind, of every device in the comparison.
        all_roles: every role that the engine placed.
    """

    def __init__(self, kinds: Mapping[str, str], all_roles: set[Role]) -> None:
        """Remember the names; nothing else."""
        self._kinds = kinds
        self._all = all_roles

    def what(self, moved: Moved) -> str:
        """The files that moved: ``the log``, ``everything``."""
        roles = roles_of(moved)
        if len(roles) > 1 and roles == self._all:
            return "everything"
        return join([ROLE_NAMES[role] for role in Role if role in roles])

    def rest(self, moved: Moved, more: set[Role]) -> str:
        """What is left once some roles of ``moved`` have gone: ``everything else``, ``the data``."""
        if roles_of(moved) == self._all:
            return "everything else"
        return join([ROLE_NAMES[role] for role in Role if role in more])

    def moving(self, placement: str, moved: Moved, targets: bool = True) -> str:
        """``moving the log to the SSD``; the placement's name where nothing moved."""
        if not moved:
            return f"placement {placement}"
        if not targets or (len(moved) > 1 and roles_of(moved) == self._all):
            return f"moving {self.what(moved)}"
        return "moving " + join(
            [f"{self.what({d: r})} to {self._device(d, moved)}" for d, r in moved.items()]
        )

    def _device(self, device: str, moved: Moved) -> str:
        kind = self._kinds.get(device, "")
        alike = [name for name, other in self._kinds.items() if other == kind and name in moved]
        if device in _KIND_NAMES:
            return _KIND_NAMES[device]
        return _KIND_NAMES[kind] if kind in _KIND_NAMES and len(alike) == 1 else device


def _identities(run: RunResult) -> dict[str, str]:
    return {d.name: d.path for d in run.devices if d.kind == "real" and d.path}
