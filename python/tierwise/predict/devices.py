"""Devices as people name them in a question: a profile, an end of its name, a file, or what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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
        name: of a profile that ships, its name; of one of the user's own, the absolute path of its file. With
            ``#2`` where it is a further one of the same kind.
        profile: what it is.
    """

    name: str
    profile: Profile


def resolve(name: str) -> NamedDevice:
    """Find the device that a name stands for.

    A name is that of a profile; or what is left of it without its kind (``nvme-dc`` for ``ssd-nvme-dc``); or
    its end, its beginning or a part of it, in whole words, if one profile only has it; or the path of a
    profile, which is read once. ``#2`` behind it makes it another device of the same kind.

    Raises:
        TierwiseError: if no profile or several fit.
    """
    base, mark, copy = name.rpartition(_COPY)
    if not mark:
        base, copy = name, ""
    elif not (copy.isdecimal() and int(copy) > 0):
        raise TierwiseError(f"device {name!r}: {copy!r} is not a number", "write for example nvme-dc#2")
    own = profiles.is_path(base)
    found = str(Path(base).resolve()) if own else _full_name(base)
    further = f"{_COPY}{copy}" if copy and copy != "1" else ""
    return NamedDevice(found + further, _load(found))


@lru_cache
def _load(name: str) -> Profile:
    """A profile by its full name or absolute path: one file is one profile as long as the program runs."""
    return profiles.load(name)


@lru_cache
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
