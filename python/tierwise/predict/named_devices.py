"""Devices as users name them in a scenario: a profile, an end of its name, a file, or the recorded device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tierwise.device_models import profiles
from tierwise.device_models.profiles import DeviceProfile
from tierwise.model.errors import TierwiseError
from tierwise.model.names import resolved_path
from tierwise.model.placement import Role

RECORDED = "recorded"
"""Names the device on which a role lay in the recording."""
_COPY = "#"
_MOST_DIGITS = 9
"""``NAME#2`` is a second device like ``NAME``, which shares nothing with it."""
_given: ContextVar[Mapping[str, DeviceProfile]] = ContextVar("_given", default={})  # noqa: B039  (never changed)


@dataclass(frozen=True)
class NamedDevice:
    """A device of a scenario.

    Attributes:
        name: name of a shipped profile, or absolute path of a user's own; with ``#2`` for a further device
            of the same kind.
        profile: its profile.
    """

    name: str
    profile: DeviceProfile


def resolve_device(name: str) -> NamedDevice:
    """Find the device that a name stands for.

    A name is a profile's full or short one (:func:`~tierwise.device_models.profiles.full_profile_name`),
    or the path of a profile, which is read once. The suffix ``#2`` makes it another device of the same kind.
    """
    base, mark, copy = name.rpartition(_COPY)
    if not mark:
        base, copy = name, ""
    elif not (copy.isdecimal() and len(copy) <= _MOST_DIGITS and int(copy) > 0):
        raise TierwiseError(f"device {name!r}: {copy!r} is not a number", "write for example nvme-dc#2")
    profile = _given.get().get(base) or _load(
        str(resolved_path(Path(base))) if profiles.is_profile_path(base) else base
    )
    full_name = str(profile.file) if profiles.is_profile_path(base) else profile.name
    number = int(copy or 1)
    return NamedDevice(f"{full_name}{_COPY}{number}" if number > 1 else full_name, profile)


def is_numbered(name: str) -> bool:
    """Whether a name has a number, as ``nvme-dc#1``: several databases may share such a device."""
    return _COPY in name


def roles_lost_at_stop(placement: Mapping[Role, str]) -> list[Role]:
    """The roles that a placement keeps where a stop of the machine loses them, temporary files aside.

    Memory loses them with the power or a restart, an instance store when its machine stops.
    """
    return [
        role
        for role, device in placement.items()
        if role is not Role.TEMP and device != RECORDED and _is_volatile(resolve_device(device).profile)
    ]


def probe_doubts(placement: Mapping[Role, str]) -> list[str]:
    """What the probes of its devices' profiles doubt, once for each device."""
    names = dict.fromkeys(name for name in placement.values() if name != RECORDED)
    profiled = {(device := resolve_device(name).profile).name: device for name in names}
    return [f"{name}: {doubt}" for name, profile in profiled.items() for doubt in profile.doubts]


def roles_on_instance_store(placement: Mapping[Role, str]) -> list[Role]:
    """Those of them on an instance store."""
    return [
        role
        for role in roles_lost_at_stop(placement)
        if is_instance_store(resolve_device(placement[role]).profile)
    ]


def is_instance_store(profile: DeviceProfile) -> bool:
    """Whether it is an instance store."""
    return bool((profile.member or profile).fields.get("ephemeral"))


def is_volatile_memory(profile: DeviceProfile) -> bool:
    """Whether it keeps nothing without power; a profile of memory with a battery says that it does."""
    base = profile.member or profile
    return base.kind == "ram" and bool(base.fields.get("ephemeral", True))


def _is_volatile(profile: DeviceProfile) -> bool:
    return is_volatile_memory(profile) or is_instance_store(profile)


def own_profiles(names: Iterable[str]) -> tuple[DeviceProfile, ...]:
    """The profiles among these devices that are files of a user, each once."""
    own = {str(profile.file): profile for name in names if (profile := resolve_device(name).profile)}
    return tuple(profile for profile in own.values() if profile.is_own)


@contextmanager
def using_profiles(known: Iterable[DeviceProfile]) -> Iterator[None]:
    """Use these profiles for their files, which this host may not have, in what the calling thread does."""
    token = _given.set({str(profile.file): profile for profile in known})
    try:
        yield
    finally:
        _given.reset(token)


@lru_cache
def _load(name: str) -> DeviceProfile:
    """A profile by name or absolute path; each is loaded once."""
    return profiles.load_profile(name)
