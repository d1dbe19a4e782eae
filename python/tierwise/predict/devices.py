"""Devices as people name them in a question: a profile, an end of its name, a file, or what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tierwise import profiles
from tierwise.errors import TierwiseError
from tierwise.profiles import Profile

RECORDED = "recorded"
"""Names the device on which a role lay in the recording."""
_COPY = "#"
"""``NAME#2`` is a second device like ``NAME``, which shares nothing with it."""


@dataclass(frozen=True)
class NamedDevice:
    """A device of a question.

    Attributes:
        name: full name of its profile, with ``#2`` where it is a further one of the same kind.
        profile: what it is.
    """

    name: str
    profile: Profile


@lru_cache
def resolve(name: str) -> NamedDevice:
    """Find the device that a name stands for.

    A name is that of a profile; or what is left of it without its kind (``nvme-dc`` for ``ssd-nvme-dc``); or
    its end, its beginning or a part of it, in whole words, if one profile only has it; or the path of a
    profile. ``#2`` behind it makes it another device of the same kind.

    Raises:
        TierwiseError: if no profile or several fit.
    """
    base, mark, copy = name.partition(_COPY)
    if mark and not (copy.isdecimal() and int(copy) > 0):
        raise TierwiseError(f"device {name!r}: {copy!r} is not a number", "write for example nvme-dc#2")
    profile = profiles.load(_full_name(base))
    return NamedDevice(profile.name + (f"{_COPY}{copy}" if mark and copy != "1" else ""), profile)


def _full_name(name: str) -> str:
    known = profiles.names()
    if name in known:
        return name
    for fits in (_without_kind, _ends, _begins, _contains):
        found = [one for one in known if fits(one, name)]
        if len(found) > 1:
            raise TierwiseError(
                f"device {name!r} may be any of {', '.join(found)}", "give more of the name of one of them"
            )
        if found:
            return found[0]
    return name


def _without_kind(profile: str, name: str) -> bool:
    return profile.partition("-")[2] == name


def _ends(profile: str, name: str) -> bool:
    return profile.endswith(f"-{name}")


def _begins(profile: str, name: str) -> bool:
    return profile.startswith(f"{name}-")


def _contains(profile: str, name: str) -> bool:
    return f"-{name}-" in profile
