"""What a session of a server over SQL tells, whatever the engine: counters, sessions' states, facts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tierwise import _core
from tierwise.model.placement import Role
from tierwise.results import WaitClass


class UnreadableError(Exception):
    """A server did not answer.

    Args:
        reason: for the recording: without host, user or other driver text.
        detail: for the terminal: the driver's own message, on one line; the reason if there is none.
    """

    LOST = "the connection failed"
    DENIED = "the user of the DSN may not read them"
    REFUSED = "the engine refused the query"
    MALFORMED = "the DSN is malformed"

    def __init__(self, reason: str, detail: str = "") -> None:
        """Keep both."""
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
