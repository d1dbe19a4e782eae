"""The real devices of one run, with the kernel's counters per device and per role."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tierwise.host.real import DiskCounters, RealDevice
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results import DeviceInfo, RoleIo
from tierwise.studies.runner.role_requests import Counts, RoleRequests, Shares


class RealDevices:
    """Roles of directories on real devices, and the I/O of each role.

    A role that is alone on a device has the device's counters. Roles that share a device, in any directories,
    are told apart by their requests, if requested and possible here.
    """

    def __init__(self, devices: Mapping[str, RealDevice], places: Mapping[Role, tuple[str, Path]]) -> None:
        """Register devices and places.

        Args:
            devices: devices by name.
            places: device name and directory of each role on a real device.
        """
        self._devices, self._names = devices, {role: name for role, (name, _) in places.items()}
        self._places = {role: place for role, (_, place) in places.items()}
        self._numbers = {name: device.path.stat().st_dev for name, device in devices.items()}
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
            if self._devices[self._names[role]].counters() is not None
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
        self._before = {name: device.counters() for name, device in self._devices.items()}

    def stop(self, elapsed_s: float) -> tuple[dict[Role, RoleIo], list[DeviceInfo]]:
        """I/O by role and of each device since :meth:`start`, ``elapsed_s`` seconds ago."""
        after = {name: device.counters() for name, device in self._devices.items()}
        shares = self._shares()
        whole = {
            name: now.since(before, name, elapsed_s)
            for name, now in after.items()
            if now is not None and (before := self._before.get(name)) is not None
        }
        io = {role: one for role in self._names if (one := self._role_io(role, whole, shares)) is not None}
        return io, [self._info(name, whole.get(name), io, shares) for name in self._devices]

    def _shares(self) -> Shares | None:
        """Counts per role, or ``None``; the counters of whole devices are valid without them."""
        try:
            return None if self._requests is None else self._requests.end()
        except TierwiseError as error:
            self._not_by_role = str(error)
            return None

    def describe(self) -> list[DeviceInfo]:
        """The devices without counters."""
        return [self._info(name, None, {}, None) for name in self._devices]

    def _roles_on(self, number: int) -> list[Role]:
        return [role for role, name in self._names.items() if self._numbers[name] == number]

    def _role_io(self, role: Role, whole: Mapping[str, RoleIo], shares: Shares | None) -> RoleIo | None:
        name = self._names[role]
        if len(self._roles_on(self._numbers[name])) == 1:
            return whole.get(name)
        if shares is None or role not in shares.roles:
            return None
        return _io(name, shares.roles[role]).model_copy(update={"flushes": None})

    def _info(
        self, name: str, whole: RoleIo | None, io: Mapping[Role, RoleIo], shares: Shares | None
    ) -> DeviceInfo:
        number = self._numbers[name]
        info = DeviceInfo(
            name=name,
            kind="real",
            path=str(self._devices[name].path),
            roles=[role for role, one in self._names.items() if one == name],
            io=whole,
        )
        sharing = self._roles_on(number)
        first = next(one for one in self._devices if self._numbers[one] == number)
        if first != name:
            return info.model_copy(update={"same_device_as": first})
        # The first of several directories on one device reports the I/O that belongs to no role.
        if len(sharing) < 2 or whole is None:
            return info
        if shares is None or number not in shares.unattributed:
            return info.model_copy(update={"not_by_role": self._not_by_role})
        unattributed = _io(name, shares.unattributed[number])
        untraced = _less(whole, [unattributed, *(io[role] for role in sharing)])
        return info.model_copy(update={"unattributed": unattributed, "untraced": untraced})


def _io(name: str, counts: Counts) -> RoleIo:
    return RoleIo.model_validate({"device": name, **counts})


def _less(whole: RoleIo, parts: list[RoleIo]) -> RoleIo:
    """The whole less the sum of its parts; flushes are counted for disks, not for partitions."""
    figures = ("reads", "writes", "discards", "read_bytes", "write_bytes")
    left = {name: getattr(whole, name) - sum(getattr(one, name) or 0 for one in parts) for name in figures}
    return RoleIo.model_validate({"device": whole.device, "flushes": None, **left})
