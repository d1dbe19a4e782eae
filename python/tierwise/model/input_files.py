"""Text files that a user names: read whole, limited in size, regular files only."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from tierwise.model.errors import TierwiseError

_MOST_BYTES = 16 << 20


def read_text(path: Path, fix: str, *, most_bytes: int = _MOST_BYTES) -> str:
    """The text of a file.

    A pipe or a device is refused: it may have no end.

    Args:
        path: of the file.
        fix: what to do if it cannot be read, for the error.
        most_bytes: refuse a larger file.

    Raises:
        TierwiseError: naming the file, if it is missing, no regular file, too large, or not UTF-8.
    """
    return read_bytes(path, fix, most_bytes=most_bytes, text=True).decode("utf-8")


def read_bytes(path: Path, fix: str, *, most_bytes: int = _MOST_BYTES, text: bool = False) -> bytes:
    """The bytes of a file, as :func:`read_text`; with ``text`` they are UTF-8."""
    try:
        # Opening a pipe would wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise TierwiseError(f"{path} is no regular file", fix)
            if status.st_size > most_bytes:
                raise TierwiseError(f"{path}: {status.st_size} bytes, above {most_bytes}", fix)
            read = file.read(most_bytes)
        if text:
            read.decode("utf-8")
    except UnicodeDecodeError:
        raise TierwiseError(f"{path}: not UTF-8", "save it as UTF-8") from None
    except OSError as error:
        raise TierwiseError(f"{path}: {error.strerror}", fix) from error
    except ValueError:
        raise TierwiseError(f"{str(path)!r}: a path has no NUL", fix) from None
    return read


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Parse a TOML text.

    Args:
        text: of the file.
        file: its name, for the error.

    Raises:
        TierwiseError: naming file and line.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TierwiseError(f"{file}: {error}", "mend the TOML") from error
    except RecursionError:
        raise TierwiseError(f"{file}: nested too deeply", "write it flat") from None
