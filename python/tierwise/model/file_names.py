"""Names that become parts of paths: a type for them, and the one function that joins them to a directory.

A study, a workload or a profile may come from a stranger: no name in one may lead out of a directory.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tierwise.model.errors import TierwiseError

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
"""At most 64 letters, digits, ``_``, ``-`` and ``.``; the first is neither ``-`` nor ``.``."""

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+-]{0,199}")
"""A name, or settings and their values."""


def path_in(directory: Path, *parts: str) -> Path:
    """The path of a file or directory below ``directory``, one name after the other.

    Raises:
        TierwiseError: naming the part that is not a valid name.
    """
    for part in parts:
        if not _PART.fullmatch(part):
            raise TierwiseError(
                f"{part[:80]!r} cannot be the name of a file", "use letters, digits, '_', '-' and '.'"
            )
    return directory.joinpath(*parts)


def resolved(path: Path) -> Path:
    """The absolute path without links.

    Raises:
        TierwiseError: naming it, if links go in a circle or it cannot be a path.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise TierwiseError(f"{str(path)[:200]!r} cannot be resolved", "name another path") from None


def file_below(directory: Path, name: str) -> Path:
    """The path of a file that text in ``directory`` names; links are resolved.

    Raises:
        TierwiseError: if the file is outside the directory.
    """
    try:
        path = (directory / name).resolve()
        path.exists()  # refuses a name that is too long
        inside = path.is_relative_to(directory.resolve())
    except (OSError, RuntimeError, ValueError):
        inside = False
    if not inside:
        raise TierwiseError(f"{name[:80]!r} does not lie in {directory}", "name a file in that folder")
    return path
