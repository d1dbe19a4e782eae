"""The real devices of one run, with the kernel's counters per device and role, by files where they share one.

A program in the kernel gives the sectors of completed requests; the file system gives the file there.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.host.disk.partitions import emulated_partitions
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.units import SECTOR_BYTES
from tierwise.results import DeviceInfo, RoleIo, UntracedIo


@dataclass(frozen=True)
class DiskCounters:
    """The block layer statistics that tierwise uses (Documentation/block/stat.rst).

    The kernel counts the I/O of all users of a device, not only this run's.
    """

    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    busy_ms: int
    queued_ms: int
    discards: int
    flushes: int

    @classmethod
    def under(cls, path: Path) -> DiskCounters | None:
        """Totals since boot of the device under a path; ``None`` if its file system has no block device."""
        number = path.stat().st_dev
        file = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        return cls.parse(file.read_text("ascii")) if file.exists() else None

    @classmethod
    def parse(cls, text: str) -> DiskCounters:
        """Read one ``stat`` file; kernels before 5.5 count no flushes, before 4.18 no discards."""
        field = [int(word) for word in text.split()] + [0] * 6
        return cls(
            reads=field[0],
            read_bytes=field[2] * SECTOR_BYTES,
            writes=field[4],
            write_bytes=field[6] * SECTOR_BYTES,
            busy_ms=field[9],
            queued_ms=field[10],
            discards=field[11],
            flushes=field[15],
        )

    def since(self, before: DiskCounters, device: str, elapsed_s: float) -> RoleIo:
        """I/O between two readings that are ``elapsed_s`` seconds apart."""
        counts = {name: getattr(self, name) - getattr(before, name) for name in _FIGURES}
        return _io(device, counts).changed(
            busy_s=_rise_ms(before.busy_ms, self.busy_ms) / 1000,
            queue_depth_mean=_rise_ms(before.queued_ms, self.queued_ms) / 1000 / elapsed_s
            if elapsed_s
            else None,
        )


def _rise_ms(before: int, after: int) -> int:
    """Between two readings of a time that the kernel counts in 32 bits, which last 49 days."""
    return (after - before) % (1 << 32)


def real_directory(name: str, path: str) -> Path:
    """The directory on a real device that the user named, where files can be made."""
    directory = Path(path)
    try:
        with tempfile.TemporaryFile(dir=directory):  # the mode alone does not tell: /proc denies it to root
            pass
    except (OSError, ValueError):
        raise TierwiseError(
            f"devices.{name}.path: {path} is not a writable directory",
            "name a mounted directory you may write",
        ) from None
    return directory


_LOOKS_EACH_S = 0.5
"""The location of a file created, written and removed between two scans is unknown."""
_LOOKING_SHARE = 0.02
"""Scans take at most this share of one core's time, whatever the number of files."""

_FIGURES = ("reads", "writes", "flushes", "discards", "read_bytes", "write_bytes")
Counts = dict[str, int]
"""A number for each of these figures."""


@dataclass(frozen=True)
class RequestShares:
    """Requests completed in a window: by role, and by device number for those that belong to no role."""

    roles: dict[Role, Counts]
    unattributed: dict[int, Counts]


class RoleRequests:
    """Counts requests by role from :meth:`begin` to :meth:`end`, any number of times."""

    def __init__(self, places: Mapping[Role, Path], undo: ExitStack) -> None:
        """Attach; nothing is counted yet.

        Args:
            places: directory of each role; it contains no other role's directory.
            undo: detaches.
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
        self._counter = _core.RequestCounter(ranges)
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

    def end(self) -> RequestShares:
        """End the window."""
        self._counter.stop()
        self._stop_looking()
        if self._failure is not None:
            raise self._failure
        self._look()
        counted = json.loads(self._counter.end())
        shares = RequestShares(
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
    """Index of the device under a place."""
    if index is None:
        raise TierwiseError(f"{place}: no block device is under it", "use a directory on ext4 or xfs")
    device = devices[index]
    if device["untraced"] is not None:
        raise TierwiseError(
            f"{device['name']}: the kernel traces no requests to {device['untraced']}",
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


class RealDevices:
    """Roles of directories on real devices, and the I/O of each role.

    A role that is alone on a device has the device's counters. Roles that share a device, in any directories,
    are told apart by their requests, if requested and possible here.
    """

    def __init__(self, directories: Mapping[str, Path], places: Mapping[Role, tuple[str, Path]]) -> None:
        self._directories, self._names = directories, {role: name for role, (name, _) in places.items()}
        self._places = {role: place for role, (_, place) in places.items()}
        self._numbers = {name: directory.stat().st_dev for name, directory in directories.items()}
        self._before: dict[str, DiskCounters | None] = {}
        self._requests: RoleRequests | None = None
        self._not_by_role: str | None = None

    def tell_roles_apart(self, undo: ExitStack) -> None:
        """Count per role where roles share a device; if that is impossible, keep the reason."""
        shared = {
            role: self._places[role]
            for number in self._numbers.values()
            if len(roles := self._roles_on(number)) > 1
            for role in roles
            if DiskCounters.under(self._directories[self._names[role]]) is not None
        }
        if not shared:
            return
        with ExitStack() as attached:
            try:
                self._requests = RoleRequests(shared, attached)
            except TierwiseError as error:
                self._not_by_role = str(error)
                return
            undo.enter_context(attached.pop_all())

    def start(self) -> None:
        """Every counter reads zero from here."""
        if self._requests is not None:
            self._requests.begin()
        self._before = self._counters()

    def stop(self, elapsed_s: float) -> tuple[dict[Role, RoleIo], list[DeviceInfo]]:
        """I/O by role and of each device since :meth:`start`, ``elapsed_s`` seconds ago."""
        after = self._counters()
        shares = self._shares()
        whole = {
            name: now.since(before, name, elapsed_s)
            for name, now in after.items()
            if now is not None and (before := self._before.get(name)) is not None
        }
        io = {
            role: role_io
            for role in self._names
            if (role_io := self._role_io(role, whole, shares)) is not None
        }
        return io, [self._info(name, whole.get(name), io, shares) for name in self._directories]

    def _counters(self) -> dict[str, DiskCounters | None]:
        return {name: DiskCounters.under(directory) for name, directory in self._directories.items()}

    def _shares(self) -> RequestShares | None:
        """Counts per role, or ``None``; the counters of whole devices are valid without them."""
        try:
            return None if self._requests is None else self._requests.end()
        except TierwiseError as error:
            self._not_by_role = str(error)
            return None

    def describe(self) -> list[DeviceInfo]:
        """The devices without counters."""
        return [self._info(name, None, {}, None) for name in self._directories]

    def _roles_on(self, number: int) -> list[Role]:
        return [role for role, name in self._names.items() if self._numbers[name] == number]

    def _role_io(
        self, role: Role, whole: Mapping[str, RoleIo], shares: RequestShares | None
    ) -> RoleIo | None:
        name = self._names[role]
        if len(self._roles_on(self._numbers[name])) == 1:
            return whole.get(name)
        if shares is None or role not in shares.roles:
            return None
        return _io(name, shares.roles[role]).changed(flushes=None)

    def _info(
        self, name: str, whole: RoleIo | None, io: Mapping[Role, RoleIo], shares: RequestShares | None
    ) -> DeviceInfo:
        number = self._numbers[name]
        info = DeviceInfo(
            name=name,
            kind="real",
            path=str(self._directories[name]),
            roles=[role for role, device in self._names.items() if device == name],
            io=whole,
        )
        sharing = self._roles_on(number)
        first = next(device for device in self._directories if self._numbers[device] == number)
        if first != name:
            return info.changed(same_device_as=first)
        # The first of several directories on one device reports the I/O that belongs to no role.
        if len(sharing) < 2 or whole is None:
            return info
        if shares is None or number not in shares.unattributed:
            return info.changed(not_by_role=self._not_by_role)
        unattributed = _io(name, shares.unattributed[number])
        untraced = _untraced_io(whole, [unattributed, *(io[role] for role in sharing)])
        return info.changed(unattributed=unattributed, untraced=untraced)


def _io(name: str, counts: Counts) -> RoleIo:
    return RoleIo.model_validate({"device": name, **counts})


def _untraced_io(whole: RoleIo, parts: list[RoleIo]) -> UntracedIo:
    """The whole less the sum of its parts; flushes are counted for disks, not for partitions."""
    figures = [name for name in _FIGURES if name != "flushes"]
    left = {name: getattr(whole, name) - sum(getattr(part, name) or 0 for part in parts) for name in figures}
    return UntracedIo.model_validate({"device": whole.device, "flushes": None, **left})
