"""Arguments from Python: texts as on the command line, and the numbers and paths that stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.names import names_in
from tierwise.model.placement import parse_place


def text_of(value: object, name: str, example: str) -> str:
    """A text, or a number as one; nothing for ``None``."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Path)):
        raise TierwiseError(f"{name}: {value!r} is no text", f"write for example {example!r}")
    return str(value)


def number_of(value: object, name: str, example: float) -> float:
    """A number, or a text of one."""
    try:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise TierwiseError(f"{name}: {value!r} is no number", f"write for example {example:g}")


def flag_of(value: object, name: str) -> bool:
    """``True`` or ``False``: any text would be true."""
    if not isinstance(value, bool):
        raise TierwiseError(f"{name}: {value!r} is neither True nor False", "give one of the two")
    return value


def path_of(value: object, name: str) -> Path:
    """A path, or a text of one."""
    if not isinstance(value, (str, Path)) or value == "":
        raise TierwiseError(f"{name}: {value!r} is no path", "give a text or a pathlib.Path")
    return Path(value)


def names_of(value: object, name: str) -> list[str]:
    """A list of names, or one text with commas as on the command line; none for ``None``."""
    if isinstance(value, (str, Path)):
        return names_in(str(value))
    given = list(value) if isinstance(value, Iterable) else [value] if value is not None else []
    for each in given:
        if not isinstance(each, (str, Path)):
            raise TierwiseError(f"{name}: {each!r} is no name", "write for example ['nvme-dc', 'gp3']")
    return [str(each) for each in given]


def place_of(value: object) -> dict[str, str]:
    """A placement, as a mapping or as the text of ``--place``; nothing moves for ``None``."""
    if not value and (value is None or isinstance(value, (str, Mapping))):
        return {}
    if isinstance(value, str):
        return parse_place(value, relations=True)
    if not isinstance(value, Mapping):
        raise TierwiseError(f"place: {value!r} is no placement", "write {'log': 'nvme-dc'} or 'log=nvme-dc'")
    return dict(value)


def place_text(value: object, name: str) -> str:
    """The text of an option that takes ``ROLE=DEVICE,…`` or a device, from a mapping too."""
    if isinstance(value, Mapping):
        return ",".join(f"{role}={device}" for role, device in value.items())
    return text_of(value, name, "gp3")
