"""A server that can be observed, whatever its engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tierwise.capture.counter_reading import Reading
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.results import WaitClass
from tierwise.results.wait_sampling import WaitProbe


class State(NamedTuple):
    """The state of a session."""

    event: str
    wait_class: WaitClass
    role: Role | None


@dataclass
class Tally:
    """Sessions by state, added up over the ticks.

    Attributes:
        cores: of the server; ``None`` if unknown.
        states: sessions seen in each state.
        running: sessions without a wait, at most ``cores`` of one tick.
        ticks: number of ticks.
    """

    cores: int | None
    states: Counter[State] = field(default_factory=Counter)
    running: int = 0
    ticks: int = 0

    def add(self, states: Mapping[State, int]) -> list[WaitClass]:
        """Add one tick; return the class of each of its sessions."""
        self.states.update(states)
        running = sum(count for state, count in states.items() if state.wait_class == "cpu")
        self.running += running if self.cores is None else min(running, self.cores)
        self.ticks += 1
        return [state.wait_class for state, count in states.items() for _ in range(count)]


@dataclass(frozen=True)
class Catalogue:
    """Sizes from the catalogue: bytes by role, and of all databases."""

    sizes: Mapping[Role, int]
    data_directory_bytes: int | None
    limits: Sequence[str] = ()
    """What it does not tell, as sentences."""


def require_one_server(one: str, other: str) -> None:
    """Refuse a DSN whose sessions are of several servers: samples of one, counters of the other.

    Raises:
        TierwiseError: if the two texts, which each session's server gave, differ.
    """
    if one != other:
        raise TierwiseError(
            "two sessions of the DSN are of different servers: it leads to a load balancer",
            "give the address of one server",
        )


class Server(Protocol):
    """An open connection to a server. Its methods raise ``UnreadableError``."""

    engine: str
    version: str
    page_bytes: int
    limits: list[str]
    """What this version does not tell, as sentences."""

    def read(self) -> Reading:
        """Counters, under the names of an observation."""

    def transactions(self, counts: dict[str, int]) -> int:
        """Transactions that others ended, by increases of the counters."""

    def catalogue(self) -> Catalogue:
        """Sizes of files."""

    def probe(self, tally: Tally) -> WaitProbe:
        """A sampler on a connection of its own, which adds its ticks to ``tally``."""

    def tick_s(self) -> float:
        """Time that the server works on one tick."""

    def close(self) -> None:
        """Disconnect."""
