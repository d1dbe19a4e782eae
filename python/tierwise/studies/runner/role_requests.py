"""Requests to real devices shared by several roles, attributed by the location of each role's files.

The kernel's tracepoint of completed requests gives the sector; the file system gives the file there.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.host.disk.partitions import emulated_partitions
from tierwise.host.tracing import Tracing
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

_LOOKS_EACH_S = 0.5
"""The location of a file created, written and removed between two scans is unknown."""
_LOOKING_SHARE = 0.02
"""Scans take at most this share of one core's time, whatever the number of files."""

Counts = dict[str, int]
"""``reads, writes, flushes, discards, read_bytes, write_bytes``."""
_FIGURES = ("reads", "writes", "flushes", "discards", "read_bytes", "write_bytes")


@dataclass(frozen=True)
class Shares:
    """Requests completed in a window: by role, and by device number for those that belong to no role."""

    roles: dict[Role, Counts]
    unattributed: dict[int, Counts]


class RoleRequests:
    """Counts requests by role from :meth:`begin` to :meth:`end`, any number of times."""

    def __init__(self, places: Mapping[Role, Path], undo: ExitStack) -> None:
        """Attach; nothing is traced yet.

        Args:
            places: directory of each role; it contains no other role's directory.
            undo: detaches.

        Raises:
            TierwiseError: if nothing can be traced here, or a device has no requests of its own.
        """
        emulated = json.dumps(emulated_partitions())
        devices, indices = json.loads(_core.devices_of(list(places.values()), emulated))
        self._places = [
            (role, place, _traced(devices, index, place))
            for (role, place), index in zip(places.items(), indices, strict=True)
        ]
        self._numbers = {index: place.stat().st_dev for _, place, index in self._places}
        ranges = [
            (index, *stretch) for index, device in enumerate(devices) for stretch in device["stretches"]
        ]
        tracing = undo.enter_context(Tracing.open())
        self._counter = _core.RequestCounter(str(tracing.mount), f"{tracing.instance}-roles", ranges)
        undo.callback(self._counter.close)
        undo.callback(self._stop_looking)
        self._extents = _core.Extents()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: TierwiseError | None = None

    def begin(self) -> None:
        """Begin a window; discard one that was not ended."""
        self._stop_looking()
        self._failure = None
        self._look()
        self._counter.begin()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="role-requests", daemon=True)
        self._thread.start()

    def end(self) -> Shares:
        """End the window.

        Raises:
            TierwiseError: if the kernel's events could not be read.
        """
        self._counter.stop()
        self._stop_looking()
        if self._failure is not None:
            raise self._failure
        self._look()
        counted = json.loads(self._counter.end())
        shares = Shares(
            {role: dict.fromkeys(_FIGURES, 0) for role, _, _ in self._places},
            {number: dict.fromkeys(_FIGURES, 0) for number in self._numbers.values()},
        )
        for row in counted:
            device, owner = row.pop("device"), row.pop("owner")
            if owner is None:
                shares.unattributed[self._numbers[device]] = row
            else:
                shares.roles[self._places[owner][0]] = row
        return shares

    def _run(self) -> None:
        wait_s = _LOOKS_EACH_S
        try:
            while not self._stopping.wait(wait_s):
                began_s = time.thread_time()
                self._look()
                self._counter.count()
                wait_s = max(_LOOKS_EACH_S, (time.thread_time() - began_s) / _LOOKING_SHARE)
        except TierwiseError as error:
            self._failure = error

    def _look(self) -> None:
        """Register where each role's files lie now, before the requests completed so far are counted."""
        for owner, (_, place, device) in enumerate(self._places):
            for path in _files(place):
                self._counter.place(owner, device, self._extents.of(path))

    def _stop_looking(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _traced(devices: Sequence[Mapping[str, Any]], index: int | None, place: Path) -> int:
    """Index of the device under a place.

    Raises:
        TierwiseError: if its requests are not traced.
    """
    if index is None:
        raise TierwiseError(f"{place}: no block device is under it", "use a directory on ext4 or xfs")
    device = devices[index]
    if device["untold"] is not None:
        raise TierwiseError(
            f"{device['name']}: the kernel tells no requests to {device['untold']}",
            "use a directory without it",
        )
    if not device["tells_places"]:
        raise TierwiseError(
            f"{place}: its file system has addresses of its own", "use a directory on ext4 or xfs"
        )
    return index


def _files(directory: Path) -> Iterator[Path]:
    """Files below a directory; links are not followed, since they lead to other roles' places."""
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
