"""Facts about a recorded file: its role, device, size, and block locations."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.capture.devices import Devices
from tierwise.capture.extents import KnownExtents
from tierwise.model.roles import Role

RoleOf = Callable[[str], Role | None]
Facts = dict[str, Any]
"""``role, device, size_bytes, extents`` of a file."""

_DELETED = " (deleted)"


class FileFacts:
    """Answers the recorder's questions about files, by their paths as the recorded processes see them."""

    def __init__(
        self,
        devices: Devices,
        role_of: RoleOf,
        root: Path = Path("/"),
        content: Callable[[Path], Role | None] = lambda _: None,
    ) -> None:
        """Prepare.

        Args:
            devices: collects each device found.
            role_of: role of a file by its path.
            root: root of the recorded processes' file system, ``/proc/PID/root`` for a container's.
            content: role of a file by its first bytes, where its path says nothing.
        """
        self._devices, self._role_of, self._root, self._content = devices, role_of, root, content
        self._extents = KnownExtents()

    def resolve(self, paths_json: str, earlier: Mapping[str, Facts]) -> str:
        """Answer a JSON list of paths with a list of :data:`Facts`: earlier ones if known, else current."""
        return json.dumps([earlier.get(path) or self.of(path) for path in json.loads(paths_json)])

    def snapshot(self, paths: Iterable[str]) -> dict[str, Facts]:
        """Current facts of these files: later they may be deleted, or other files may have their names."""
        return {path.removesuffix(_DELETED): self.of(path) for path in paths}

    def of(self, path: str) -> Facts:
        """Facts of one file; empty for a socket or any other file that is not regular."""
        nothing: Facts = {"role": None, "device": None, "size_bytes": 0, "extents": []}
        if not path.startswith("/"):
            return nothing
        seen = path.removesuffix(_DELETED)
        place = _core.path_within(self._root, seen)
        status = _status(place)
        if status is not None and not stat.S_ISREG(status.st_mode):
            return nothing
        # A link may lead from a directory without a role to one that was placed for a role.
        real = "/" + str(place.relative_to(self._root))
        role = self._role_of(real) or self._role_of(seen) or self._content(place)
        device = self._device(place, status, role)
        wanted = device is not None and role is not None and self._devices.known[device].tells_places
        extents = self._extents.of(place, status) if wanted and status is not None else []
        return {
            "role": None if role is None else str(role),
            "device": device,
            "size_bytes": 0 if status is None else status.st_size,
            "extents": [[device, *extent] for extent in extents],
        }

    def _device(self, place: Path, status: os.stat_result | None, role: Role | None) -> int | None:
        """Device of the file, or of its nearest existing parent directory if it is gone."""
        there, found = place, status
        while found is None and there != self._root:
            there = there.parent
            found = _status(there)
        return None if found is None else self._devices.index_of(found.st_dev, there, role)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
