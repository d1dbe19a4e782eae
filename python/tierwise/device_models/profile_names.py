"""The profile that a short name stands for, the same for every command."""

from __future__ import annotations

from collections.abc import Sequence

from tierwise.model.errors import TierwiseError
from tierwise.model.suggestions import nearest


def full_name(name: str, known: Sequence[str]) -> str:
    """The one known profile that a name stands for.

    A name is the full name of a profile; or that name without its kind (``nvme-dc`` for ``ssd-nvme-dc``); or
    its end, its beginning or a part of it, in whole words, if only one profile matches.

    Raises:
        TierwiseError: if no profile or several fit.
    """
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
    near = nearest(name, known, 3, cutoff=0.4)
    fix = f"use one of {', '.join(near)}" if near else "use one that tierwise device list prints"
    raise TierwiseError(f"unknown device profile {name!r}", f"{fix}, or the path of a TOML file")


def _without_kind(profile: str, name: str) -> bool:
    return profile.partition("-")[2] == name


def _ends(profile: str, name: str) -> bool:
    return profile.endswith(f"-{name}")


def _begins(profile: str, name: str) -> bool:
    return profile.startswith(f"{name}-")


def _contains(profile: str, name: str) -> bool:
    return f"-{name}-" in profile
