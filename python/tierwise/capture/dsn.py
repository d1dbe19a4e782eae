"""The address of a database's counters; a DSN with a password comes from a file or the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import open_regular

VARIABLE = "TIERWISE_DSN"
"""The environment variable that holds a DSN."""
Kind = Literal["postgresql", "mysql"]
"""Protocol of the connection."""
_SCHEMES: dict[str, Kind] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_KEYWORD = re.compile(r"\s*\w+\s*=")
_PASSWORD_KEYWORD = re.compile(r"(^|\s)password\s*=", re.IGNORECASE)
_EXAMPLE = "write for example postgresql://user@host/database or mysql://user@host:3306/database"
_FOR_OTHERS = 0o077


@dataclass(frozen=True)
class Dsn:
    """A data source name."""

    kind: Kind
    text: str = field(repr=False)
    """May contain a password: never printed, never stored."""


def find(argument: str | None, file: Path | None) -> Dsn | None:
    """The DSN from the option, else from the file, else from the environment; ``None`` if not given.

    Raises:
        TierwiseError: for an invalid DSN, a password on the command line, or a file that others may read.
    """
    if argument is not None and file is not None:
        raise TierwiseError("both --dsn and --dsn-file are given", "give one of them")
    if argument is not None:
        dsn = parse(argument, "--dsn")
        if _has_password(dsn.text):
            raise TierwiseError(
                "--dsn: a password on the command line is seen by every user of the machine",
                f"put the DSN into {VARIABLE} or into a file for --dsn-file",
            )
        return dsn
    if file is not None:
        return parse(_content(file), "--dsn-file")
    text = os.environ.get(VARIABLE, "")
    return parse(text, VARIABLE) if text else None


def parse(text: str, what: str) -> Dsn:
    """Determine the engine of a DSN.

    Raises:
        TierwiseError: naming ``what`` but not the text, if it is neither a URL nor PostgreSQL's keywords.
    """
    text = text.strip()
    scheme, mark, _ = text.partition("://")
    if mark and scheme in _SCHEMES:
        return Dsn(_SCHEMES[scheme], text)
    if not mark and _KEYWORD.match(text):
        return Dsn("postgresql", text)
    raise TierwiseError(f"{what}: no DSN that tierwise knows", _EXAMPLE)


def _has_password(text: str) -> bool:
    if "://" not in text:
        return _PASSWORD_KEYWORD.search(text) is not None
    try:
        parts = urlsplit(text)
        return parts.password is not None or "password" in parse_qs(parts.query)
    except ValueError:
        return True


def _content(file: Path) -> str:
    fix = "name a readable file"
    try:
        with open_regular(file, fix) as opened:
            mode = os.fstat(opened.fileno()).st_mode
            content = opened.read().decode("utf-8")
    except TierwiseError as error:
        raise TierwiseError(f"--dsn-file: cannot read {error.message}", fix) from None
    except (OSError, UnicodeDecodeError):
        raise TierwiseError(f"--dsn-file: cannot read {file}: it is no text", fix) from None
    if mode & _FOR_OTHERS:
        raise TierwiseError(f"--dsn-file: other users may read {file}", f"run chmod 600 {file}")
    return content
