"""The settings that a study may give an engine: data in the engine's folder, ``settings.toml``.

A study may come from a stranger, so what is not listed is refused. A list has only settings of performance,
durability and their measurement. None of them runs a program, loads a library, names a file or an address, or
changes who may connect.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.names import did_you_mean

FILE = "settings.toml"


def listed_in(folder: Path) -> frozenset[str]:
    """All names in the file of an engine's folder, whatever the groups that they are in."""
    groups: dict[str, str] = tomllib.loads((folder / FILE).read_text("utf-8"))
    return frozenset(name for names in groups.values() for name in names.split())


def checked(engine: str, given: Mapping[str, str], allowed: Collection[str]) -> dict[str, str]:
    """The settings with their names as the engine's list has them: in lower case, with ``_``.

    A server also takes other spellings, as ``--Skip-X`` or the beginning of a name; those are refused.

    Args:
        engine: its name, for messages.
        given: from the study.
        allowed: names that a study may set.

    Raises:
        TierwiseError: naming the setting, if it is not allowed, is given twice, or has control characters.
    """
    found: dict[str, str] = {}
    for written, value in given.items():
        name = written.lower().replace("-", "_")
        shown = f"engine {engine}: setting {written if written.isprintable() else repr(written)}"
        if name not in allowed:
            near = did_you_mean(name, allowed, "leave it out;")
            raise TierwiseError(
                f"{shown} is not among those that a study may set",
                f"{near} docs/reference/engines.md says which ones it may",
            )
        if name in found:
            raise TierwiseError(f"{shown} is given twice, in two spellings", "leave one out")
        if not value.isprintable():
            raise TierwiseError(f"{shown} has the value {value!r}", "write it without control characters")
        found[name] = value
    return found
