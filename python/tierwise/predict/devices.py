"""Devices as users name them in a scenario: a profile, an end of its name, a file, or the recorded device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tierwise.device_models import profiles
from tierwise.device_models.profiles import Profile
from tierwise.model.errors import TierwiseError
from tierwise.model.names import resolved
from tierwise.model.placement import Role

RECORDED = "recorded"
"""Names the device on which a role lay in the recording."""
_COPY = "#"
_MOST_DIGITS = 9
"""``NAME#2`` is a second device like ``NAME``, which shares nothing with it."""
_given: ContextVar[Mapping[str, Profile]] = ContextVar("_given", default={})  # noqa: B039  (never changed)


@dataclass(frozen=True)
class NamedDevice:
    """A device of a scenario.

    Attributes:
        name: name of a shipped profile, or absolute path of a user's own; with ``#2`` for a further device
            of the same kind.
        profile: its profile.
    """

    name: str
    profile: Profile


def resolve(name: str) -> NamedDevice:
    """Find the device that a name stands for.

    A name is the full or short name of a profile (:func:`~tierwise.device_models.profiles.full_name`),
    or the path of a profile, which is read once. The suffix ``#2`` makes it another device of the same kind.
    """
    base, mark, copy = name.rpartition(_COPY)
    if not mark:
        base, copy = name, ""
    elif not (copy.isdecimal() and len(copy) <= _MOST_DIGITS and int(copy) > 0):
        raise TierwiseError(f"device {name!r}: {copy!r} is not a number", "write for example nvme-dc#2")
    profile = _given.get().get(base) or _load(str(resolved(Path(base))) if profiles.is_path(base) else base)
    full_name = str(profile.file) if profiles.is_path(base) else profile.name
    further = f"{_COPY}{copy}" if copy and copy != "1" else ""
    return NamedDevice(full_name + further, profile)


def is_numbered(name: str) -> bool:
    """Whether a name has a number, as ``nvme-dc#1``: several databases may share such a device."""
    return _COPY in name


def lost_at_stop(placement: Mapping[Role, str]) -> list[Role]:
    """The roles that a placement keeps where a stop of the machine loses them, temporary files aside.

    Memory loses them with the power or a restart, an instance store when its machine stops.
    """
    return [
        role
        for role, device in placement.items()
        if role is not Role.TEMP and device != RECORDED and _is_volatile(resolve(device).profile)
    ]


def ephemeral(placement: Mapping[Role, str]) -> list[Role]:
    """Those of them on an instance store."""
    return [role for role in lost_at_stop(placement) if is_ephemeral(resolve(placement[role]).profile)]


def is_ephemeral(profile: Profile) -> bool:
    """Whether it is an instance store."""
    return bool((profile.member or profile).fields.get("ephemeral"))


def is_memory(profile: Profile) -> bool:
    """Whether it keeps nothing without power; a profile of memory with a battery says that it does."""
    base = profile.member or profile
    return base.kind == "ram" and bool(base.fields.get("ephemeral", True))


def _is_volatile(profile: Profile) -> bool:
    return is_memory(profile) or is_ephemeral(profile)


def own_profiles(names: Iterable[str]) -> tuple[Profile, ...]:
    """The profiles among these devices that are files of a user, each once."""
    own = {str(profile.file): profile for name in names if (profile := resolve(name).profile)}
    return tuple(profile for profile in own.values() if profile.is_own)


@contextmanager
def given(known: Iterable[Profile]) -> Iterator[None]:
    """Use these profiles for their files, which this host may not have, in what the calling thread does."""
    token = _given.set({str(profile.file): profile for profile in known})
    try:
        yield
    finally:
        _given.reset(token)


@lru_cache
def _load(name: str) -> Profile:
    """A profile by name or absolute path; each is loaded once."""
    return profiles.load(name)
