"""A server over SQL: the address of its counters, and what a session tells of any engine."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import open_regular
from tierwise.model.numbers import percent_text
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


def find_dsn(argument: str | None, file: Path | None) -> Dsn | None:
    """The DSN from the option, else from the file, else from the environment; ``None`` if not given.

    Raises:
        TierwiseError: for an invalid DSN, a password on the command line, or a file that others may read.
    """
    if argument is not None and file is not None:
        raise TierwiseError("both --dsn and --dsn-file are given", "give one of them")
    if argument is not None:
        dsn = parse_dsn(argument, "--dsn")
        if _has_password(dsn.text):
            raise TierwiseError(
                "--dsn: a password on the command line is seen by every user of the machine",
                f"put the DSN into {VARIABLE} or into a file for --dsn-file",
            )
        return dsn
    if file is not None:
        return parse_dsn(_content(file), "--dsn-file")
    text = os.environ.get(VARIABLE, "")
    return parse_dsn(text, VARIABLE) if text else None


def parse_dsn(text: str, what: str) -> Dsn:
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


class SqlReadError(Exception):
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


_OF_TABLES = ("heap_reads", "index_reads")
"""Counters that are sums over tables, and fall when one is dropped."""


@dataclass(frozen=True)
class CounterReading:
    """Counters at one instant.

    Attributes:
        counts: by names that are the same for all versions of the engine.
        origin: changes when the counters are reset, and differs between servers.
        databases: those whose counters are added up; empty if the server has counters of its own.
        uptime_s: of a server whose restart does not change ``origin``.
    """

    counts: Mapping[str, int]
    origin: str
    databases: frozenset[int] = frozenset()
    uptime_s: int = 0

    def since(self, before: CounterReading) -> dict[str, int] | None:
        """Increases since an earlier reading; ``None`` if counters were reset or dropped in between."""
        if self.origin != before.origin or not before.databases <= self.databases:
            return None
        if self.uptime_s < before.uptime_s:
            return None
        names = {**before.counts, **self.counts}
        increases = {name: self.counts.get(name, 0) - before.counts.get(name, 0) for name in names}
        if any(increases.get(name, 0) < 0 for name in _OF_TABLES):
            increases |= dict.fromkeys(_OF_TABLES, 0)
        return None if any(increase < 0 for increase in increases.values()) else increases


class SessionState(NamedTuple):
    """The state of a client's session: what it waits for, and the role of the file that it waits for."""

    event: str
    wait_class: WaitClass
    role: Role | None


class SessionSample(NamedTuple):
    """Client sessions at one instant, without those of an observer.

    Attributes:
        states: number of sessions in each state, without the unused ones.
        active: the server's numbers of these sessions.
        unused: number of each session that is idle since before the first look, and its state.
    """

    states: Counter[SessionState]
    active: frozenset[int]
    unused: Mapping[int, SessionState]


def session_sample(groups: Iterable[tuple[Iterable[int], bool, SessionState]]) -> SessionSample:
    """A look at groups of sessions: their numbers, whether they are unused, and their state."""
    states, active, idle = Counter[SessionState](), set[int](), dict[int, SessionState]()
    for sessions, unused, state in groups:
        numbers = list(sessions)
        if unused:
            idle |= dict.fromkeys(numbers, state)
        else:
            active.update(numbers)
            states[state] += len(numbers)
    return SessionSample(states, frozenset(active), idle)


@dataclass(frozen=True)
class ServerFacts:
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


def connection_peers(descriptor: int) -> list[int]:
    """Processes at the other end of a connection; none if they cannot be seen from here."""
    return _core.socket_peers(os.fstat(descriptor).st_ino)


_LATE_SHARE = 0.05
"""Share of the counted time above which late reports of sessions to the counters are said: a judgement."""


def reporting_delay_error(late_s: float, counted_s: float) -> str | None:
    """How far rates may be off as sessions report late; ``None`` where that is little.

    Args:
        late_s: how late sessions report, for each time that counters were read at a start and an end.
        counted_s: time between those readings.
    """
    if late_s <= _LATE_SHARE * counted_s:
        return None
    return (
        f"sessions report to the server's counters up to {late_s:g} s late, and "
        f"{counted_s:,.1f} s were counted: rates may be off by {percent_text(min(late_s / counted_s, 1.0))}"
    )
