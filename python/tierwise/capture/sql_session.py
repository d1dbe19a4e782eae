"""A server over SQL: the address of its counters, and what a session tells of any engine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import open_regular
from tierwise.model.placement import Role
from tierwise.results import WaitClass

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
_PASSWORDS = ("password", "sslpassword")
_PASSWORD_KEYWORD = re.compile(rf"(?<!\w)({'|'.join(_PASSWORDS)})\s*=", re.IGNORECASE)
_EXAMPLE = "write for example postgresql://user@host/database or mysql://user@host:3306/database"
_FOR_OTHERS = 0o077


@dataclass(frozen=True)
class Dsn:
    """A data source name."""

    kind: Kind
    text: str = field(repr=False)
    """May contain a password: never printed, never stored."""
    buffer_content: bool = False
    """Whether a recording asks for the content of the engine's buffer too."""


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
    scheme, mark, address = text.partition("://")
    if mark and scheme in _SCHEMES:
        if _SCHEMES[scheme] == "postgresql" and address.partition("/")[0].count("@") > 1:
            # PostgreSQL's library would take the end of the password for a part of the host, and print it.
            raise TierwiseError(f"{what}: a user or a password has a @ of its own", "write that @ as %40")
        return Dsn(_SCHEMES[scheme], text)
    if not mark and _KEYWORD.match(text):
        return Dsn("postgresql", text)
    raise TierwiseError(f"{what}: no DSN that tierwise knows", _EXAMPLE)


def _has_password(text: str) -> bool:
    if "://" not in text:
        return _PASSWORD_KEYWORD.search(text) is not None
    try:
        parts = urlsplit(text)
        return parts.password is not None or any(name in _PASSWORDS for name in parse_qs(parts.query))
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


class UnreadableError(Exception):
    """A server did not answer.

    Args:
        reason: for the recording: without host, user or other driver text.
        detail: for the terminal: the driver's own message, on one line; the reason if there is none.
    """

    LOST = "the connection failed"
    DENIED = "the user of the DSN may not read them"
    REFUSED = "the engine refused the query"
    SLOW = "the answer took too long"
    MALFORMED = "the DSN is malformed"

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail or reason


@dataclass(frozen=True)
class Reading:
    """Counters at one instant.

    Attributes:
        counts: by names that are the same for all versions of the engine.
        origin: changes when the counters are reset, and differs between servers.
    """

    counts: Mapping[str, int]
    origin: str

    def since(self, before: Reading) -> dict[str, int] | None:
        """Increases since an earlier reading; ``None`` if the counters were reset in between."""
        if self.origin != before.origin:
            return None
        names = {**before.counts, **self.counts}
        increases = {name: self.counts.get(name, 0) - before.counts.get(name, 0) for name in names}
        return None if any(increase < 0 for increase in increases.values()) else increases


class State(NamedTuple):
    """The state of a client's session: what it waits for, and the role of the file that it waits for."""

    event: str
    wait_class: WaitClass
    role: Role | None


@dataclass(frozen=True)
class Facts:
    """What a session tells about its server.

    Attributes:
        peers: processes at the other end of the connection; none if they cannot be seen from here.
        task: process or thread that serves it, as the server itself numbers it; ``None`` if not told.
        system: PostgreSQL's system identifier; ``None`` if not told.
        data_directory: as the server sees it; ``None`` if not told.
        version: of the server.
        settings: those that were asked for, as the server writes them.
    """

    peers: Sequence[int]
    task: int | None
    system: str | None
    data_directory: str | None
    version: str | None
    settings: Mapping[str, str]


def peers_of(descriptor: int) -> list[int]:
    """Processes at the other end of a connection; none if they cannot be seen from here."""
    return _core.socket_peers(os.fstat(descriptor).st_ino)
