"""Arguments from Python: texts as on the command line, and the numbers and paths that stand for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.names import split_names
from tierwise.model.placement import parse_placement

_RENAMED = {"set": "settings", "rate": "rate_per_s"}
_OPTION = re.compile(
    r"--(place|devices?|set|rate|growth|instance|recorded-on|emulated|budget|goal|have|headroom|years|prices"
    r"|may-lose|grow|rebuildable|pid|engine|duty|preset|requests|precondition|count|depth|times"
    r"|only|own-storage|scale|duration)\b(?!-)"
)


@contextmanager
def errors_naming_arguments(renamed: Mapping[str, str] = _RENAMED) -> Iterator[None]:
    """Errors name arguments of a function where the core names options of the command line.

    Args:
        renamed: option -> argument, of those that differ in more than their hyphens.
    """
    try:
        yield
    except TierwiseError as error:
        raise error_naming_arguments(error, renamed) from error.__cause__


def error_naming_arguments(error: TierwiseError, renamed: Mapping[str, str] = _RENAMED) -> TierwiseError:
    """The error, in the names of arguments."""

    def argument(option: re.Match[str]) -> str:
        return renamed.get(option[1], option[1].replace("-", "_"))

    error.message, error.fix = (_OPTION.sub(argument, text) for text in (error.message, error.fix))
    error.args = (f"{error.message}: {error.fix}",)
    return error


def text_argument(value: object, name: str, example: str) -> str:
    """A text, or a number as one; nothing for ``None``."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Path)):
        raise TierwiseError(f"{name}: {value!r} is no text", f"write for example {example!r}")
    return str(value)


def number_argument(value: object, name: str, example: float) -> float:
    """A number, or a text of one."""
    try:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise TierwiseError(f"{name}: {value!r} is no number", f"write for example {example:g}")


def boolean_argument(value: object, name: str) -> bool:
    """``True`` or ``False``: any text would be true."""
    if not isinstance(value, bool):
        raise TierwiseError(f"{name}: {value!r} is neither True nor False", "give one of the two")
    return value


def path_argument(value: object, name: str) -> Path:
    """A path, or a text of one."""
    if not isinstance(value, (str, Path)) or value == "":
        raise TierwiseError(f"{name}: {value!r} is no path", "give a text or a pathlib.Path")
    return Path(value)


def name_list_argument(value: object, name: str) -> list[str]:
    """A list of names, or one text with commas as on the command line; none for ``None``."""
    if isinstance(value, (str, Path)):
        return split_names(str(value))
    given = list(value) if isinstance(value, Iterable) else [value] if value is not None else []
    for each in given:
        if not isinstance(each, (str, Path)):
            raise TierwiseError(f"{name}: {each!r} is no name", "write for example ['nvme-dc', 'gp3']")
    return [str(each) for each in given]


def placement_argument(value: object) -> dict[str, str]:
    """A placement, as a mapping or as the text of ``--place``; nothing moves for ``None``."""
    if not value and (value is None or isinstance(value, (str, Mapping))):
        return {}
    if isinstance(value, str):
        return parse_placement(value, relations=True)
    if not isinstance(value, Mapping):
        raise TierwiseError(f"place: {value!r} is no placement", "write {'log': 'nvme-dc'} or 'log=nvme-dc'")
    return {role: str(device) if isinstance(device, Path) else device for role, device in value.items()}


def placement_option_text(value: object, name: str) -> str:
    """The text of an option that takes ``ROLE=DEVICE,…`` or a device, from a mapping too."""
    if isinstance(value, Mapping):
        return ",".join(f"{role}={device}" for role, device in value.items())
    return text_argument(value, name, "gp3")
