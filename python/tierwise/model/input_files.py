"""Files that users name, strangers wrote or tierwise ships: limited, regular, opened without waiting.

The crate ``tierwise-input`` is the same for the compiled core.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.names import did_you_mean

STRICT = ConfigDict(
    allow_inf_nan=False, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
)
"""Fields of exactly the declared types, none unknown, none changed afterwards."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Letters, digits and ``_``, not a digit first."""

_ModelT = TypeVar("_ModelT", bound=BaseModel)
_LONGEST_FIELD = 80
_MOST_BYTES = 16 << 20
_MOST_TOML = 1 << 20
_MOST_FIGURE = 1e30
_MOST_DIGITS = 20
"""Of a whole number: all of 64 bits and a sign."""
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of more than 64 parts."""


def parse_as_model(
    model: type[_ModelT], content: object, where: str, fix: str, *, strict: bool | None = None
) -> _ModelT:
    """Data that others wrote, as a model. A text is JSON.

    ``where`` is the file, line or option, for the message; it may be empty.
    """
    try:
        if isinstance(content, str | bytes):
            return model.model_validate_json(content, strict=strict)
        return model.model_validate(content, strict=strict)
    except ValidationError as error:
        raise TierwiseError(
            f"{where}: {first_validation_problem(error, model)}".removeprefix(": "), fix
        ) from None


def first_validation_problem(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The first thing wrong with data for a model: the field's place, if it has one, and what is wrong."""
    first = error.errors()[0]
    field = ".".join(str(part)[:_LONGEST_FIELD] for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        schema = model.model_json_schema() if model else {}
        tables = [schema, *schema.get("$defs", {}).values()]
        known = {name for table in tables for name in table.get("properties", {})}
        message = f"no such field; {did_you_mean(str(first['loc'][-1]), sorted(known), '')}".rstrip("; ")
    elif isinstance(first["input"], int | float):  # a text may be a secret
        message = f"{message}, not {str(first['input'])[:_MOST_DIGITS]}"
    return f"{field}: {message}" if field else message


def read_text(path: Path, fix: str, *, most_bytes: int = _MOST_BYTES, in_folder: bool = False) -> str:
    """The text of a file.

    Args:
        fix: what to do if it cannot be read, for the error.
        in_folder: the user names its folder only: the file itself must not be a link.
    """
    try:
        return read_bytes(path, fix, most_bytes=most_bytes, in_folder=in_folder).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TierwiseError(f"{path}: not UTF-8", "save it as UTF-8") from None


def read_bytes(path: Path, fix: str, *, most_bytes: int = _MOST_BYTES, in_folder: bool = False) -> bytes:
    """The bytes of a file, as :func:`read_text`."""
    with (
        open_regular(path, fix, most_bytes=most_bytes, in_folder=in_folder) as file,
        os_errors(path, fix),
    ):
        return file.read(most_bytes)


def read_lines(path: Path, fix: str, *, most_bytes: int, in_folder: bool = False) -> Iterator[bytes]:
    """The lines of a file that end in a line feed, without it, one at a time."""
    with open_regular(path, fix, most_bytes=most_bytes, in_folder=in_folder) as file:
        while True:
            with os_errors(path, fix):
                line = file.readline(_MOST_BYTES)
            if len(line) == _MOST_BYTES:
                raise TierwiseError(f"{path}: a line has more than {_MOST_BYTES} bytes", fix)
            if not line.endswith(b"\n"):
                return
            yield line[:-1]


def open_regular(
    path: Path, fix: str, *, most_bytes: int = _MOST_BYTES, in_folder: bool = False
) -> BufferedReader:
    """Open a file to read it, as :func:`read_text` does.

    A pipe, a device, a socket or a directory is refused: opening one may wait or do something, and it may
    have no end. So is what the kernel writes while it is read, such as ``/proc/kmsg``.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (os.O_NOFOLLOW if in_folder else 0)
    try:
        _require_regular(path, path.stat(follow_symlinks=not in_folder), fix)
        file = os.fdopen(os.open(path, flags), "rb")
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", fix) from error
    except ValueError:
        raise TierwiseError(f"{str(path)!r}: a path has no NUL", fix) from None
    try:
        status = os.fstat(file.fileno())
        _require_regular(path, status, fix)  # another one may have taken its place
        if status.st_size > most_bytes:
            raise TierwiseError(f"{path}: {status.st_size} bytes, above {most_bytes}", fix)
        if status.st_size == 0 and _holds_something(file.fileno()):
            raise TierwiseError(f"{path} is no regular file: the kernel writes it while it is read", fix)
    except OSError as error:
        file.close()
        raise TierwiseError(f"{path}: {error.strerror}", fix) from error
    except BaseException:
        file.close()
        raise
    return file


def _holds_something(descriptor: int) -> bool:
    """Whether a file of no bytes has some, now or later."""
    try:
        return os.pread(descriptor, 1, 0) != b"" and os.fstat(descriptor).st_size == 0
    except BlockingIOError:
        return True


def _require_regular(path: Path, status: os.stat_result, fix: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    for is_one, kind in ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a directory")):
        if is_one(status.st_mode):
            raise TierwiseError(f"{path} is {kind}", fix)
    raise TierwiseError(f"{path} is no regular file", fix)


def parse_toml(text: str, file: str, fix: str = "mend the TOML") -> dict[str, Any]:
    """Parse a TOML text; ``fix`` is what to do about its syntax."""
    if len(text) > _MOST_TOML:
        raise TierwiseError(f"{file}: {len(text)} characters, above {_MOST_TOML}", "write less")
    try:
        if _DEEP_KEY.search(text):  # the parser's time grows with the square of the parts
            raise RecursionError
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TierwiseError(f"{file}: {error}", fix) from error
    except RecursionError:
        raise TierwiseError(f"{file}: nested too deeply", "write it flat") from None
    except ValueError as error:  # a number of thousands of digits
        raise TierwiseError(f"{file}: {error}", fix) from error


@cache
def read_shipped_toml(file: Path) -> dict[str, Any]:
    """The tables of a TOML file that is a part of tierwise."""
    return tomllib.loads(file.read_text("utf-8"))


def digest_of_files(content: object) -> str:
    """Eight digits that differ where the content of files does."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]


def parse_json(text: str | bytes, file: str, fix: str) -> Any:
    """Parse a JSON text without repeated fields, whose numbers have the size of figures.

    Products and ratios of a few are then finite.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_fields,
            parse_float=_figure,
            parse_int=_whole,
            parse_constant=_figure,
        )
    except RecursionError:
        problem = "nested too deeply"
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"no JSON: {error.msg} (at line {error.lineno}, column {error.colno})"
    except ValueError as error:  # of a number or a repeated field
        problem = str(error)
    raise TierwiseError(f"{file}: {problem}", fix)


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the field {twice[:_MOST_DIGITS]!r} is there twice")
    return fields


def _figure(text: str) -> float:
    value = float(text)
    if value and not 1 / _MOST_FIGURE <= abs(value) <= _MOST_FIGURE:
        raise ValueError(f"the number {text[:_MOST_DIGITS]} is not finite, too large or too small")
    return value


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"the number {text[:_MOST_DIGITS]}… is too large")
    return int(text)


DATA = Path(__file__).parents[1] / "data"
"""One folder for each kind."""
