"""A session of a server over SQL, whatever its engine: counters, states of its sessions, facts."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.results import WaitClass

LOST = "the connection failed"
DENIED = "the user of the DSN may not read them"
REFUSED = "the engine refused the query"
MALFORMED = "the DSN is malformed"
_TRIES = 9


class UnreadableError(Exception):
    """A server did not answer.

    Args:
        reason: for the recording: without host, user or other driver text.
        detail: for the terminal: the driver's own message, on one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Keep both."""
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


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
    settings: Mapping[str, str] = field(default_factory=dict)


class SqlSession(ABC):
    """An open session. Its methods raise :class:`UnreadableError` if the server does not answer."""

    engine: str
    version: str
    """Known from :meth:`watch` on, like the next two."""
    page_bytes: int
    limits: list[str]
    """What this server does not tell, as sentences."""

    def __init__(self, dsn: str) -> None:
        """Connect.

        Raises:
            UnreadableError: if that fails.
        """
        self._dsn = dsn
        self._asked = 0
        self._second: Self | None = None

    @abstractmethod
    def facts(self, names: Sequence[str]) -> Facts:
        """What it tells about its server, with the settings of these names."""

    @abstractmethod
    def read(self) -> Reading:
        """The server's counters; after :meth:`watch`, under the names of an observation too."""

    @staticmethod
    @abstractmethod
    def transactions(counts: Mapping[str, int]) -> int:
        """Transactions that ended, by increases of the counters; without ``own`` ones, if that is counted."""

    @abstractmethod
    def watch(self) -> None:
        """Prepare for an observation.

        Raises:
            TierwiseError: if rights are missing, or the server does not watch its sessions.
        """

    @abstractmethod
    def states(self, delay_s: float) -> Counter[State]:
        """Number of client sessions in each state ``delay_s`` from now, without those of the observer."""

    @abstractmethod
    def sizes(self) -> dict[Role, int]:
        """Bytes of files by role; what is not known about them is added to :attr:`limits`."""

    @abstractmethod
    def server(self) -> str:
        """The same text for all sessions of one server until it is restarted, and another one elsewhere."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect; no error if the connection was lost."""

    @property
    def own(self) -> int:
        """Transactions that this session and its second one were to the server."""
        return self._asked + (self._second._asked if self._second is not None else 0)

    def second(self) -> Self:
        """Another session of the same server, to look at states while this one reads counters.

        Raises:
            TierwiseError: if it is of another server: samples would be of one, counters of the other.
        """
        self._second = second = type(self)(self._dsn)
        if self.server() != second.server():
            second.close()
            raise TierwiseError(
                "two sessions of the DSN are of different servers: it leads to a load balancer",
                "give the address of one server",
            )
        return second

    def look_s(self) -> float:
        """Least time of a look at the states, beyond that of an empty statement: others may be running."""
        looks_s, empty_s = [], []
        for _ in range(_TRIES):
            began_s = time.perf_counter()
            self.states(0.0)
            seen_s = time.perf_counter()
            self._rows("SELECT 1")
            looks_s.append(seen_s - began_s)
            empty_s.append(time.perf_counter() - seen_s)
        return max(min(looks_s) - min(empty_s), 0.0)

    @abstractmethod
    def _rows(self, sql: str) -> list[Any]:
        """Rows of one statement."""

    @staticmethod
    def _peers_of(descriptor: int) -> list[int]:
        return _core.socket_peers(os.fstat(descriptor).st_ino)
