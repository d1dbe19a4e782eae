"""What a database engine must do for tierwise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from tierwise.errors import TierwiseError
from tierwise.roles import Role
from tierwise.wait_sampling import WaitSampler


@dataclass(frozen=True)
class EngineCounters:
    """Totals since the server was started; ``None`` is what the engine cannot tell."""

    cpu_s: float | None
    """CPU seconds of the server and all its processes, ended ones included."""
    log_bytes: int | None
    """Bytes of log generated since the database was made."""
    buffer_hits: int | None
    """Pages found in the engine's own buffer."""
    buffer_misses: int | None
    """Pages that the engine had to ask the operating system for."""

    def since(self, before: EngineCounters) -> EngineCounters:
        """What happened between two readings of one server."""
        return EngineCounters(
            cpu_s=None if self.cpu_s is None or before.cpu_s is None else self.cpu_s - before.cpu_s,
            log_bytes=_difference(self.log_bytes, before.log_bytes),
            buffer_hits=_difference(self.buffer_hits, before.buffer_hits),
            buffer_misses=_difference(self.buffer_misses, before.buffer_misses),
        )


def _difference(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else now - before


class Engine(ABC):
    """One database of its own, on directories that a placement chose.

    Life: :meth:`init`, then any of :meth:`start` with :meth:`stop` or :meth:`crash_stop`, at last
    :meth:`close`. As a context manager it closes itself. Every method raises :class:`TierwiseError` with one
    line that names the cause, and leaves nothing running when it does.
    """

    roles: ClassVar[frozenset[Role]]
    """The roles that the engine can put in a place of their own."""

    name: str

    @abstractmethod
    def init(self, places: Mapping[Role, Path]) -> None:
        """Make an empty database, each role in a new directory under its place; leave the server down.

        Several roles may share a place. ``Role.SYSTEM`` must have one; whatever else has none goes with it.
        """

    @abstractmethod
    def start(self) -> None:
        """Start the server, recover if it had crashed, and wait until it takes work."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server in order, so that nothing is left to recover. No error if it is down."""

    @abstractmethod
    def crash_stop(self) -> None:
        """End the server at once, writing nothing more, as if it had crashed. No error if it is down."""

    @abstractmethod
    def restart_cold(self) -> None:
        """Stop the server, empty the page cache of its files, start it again: both caches are cold."""

    @abstractmethod
    def close(self) -> None:
        """End the server if it runs and delete all that the engine made. Cheaper after its disks are gone."""

    @abstractmethod
    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Run statements in order; what each creates goes to the place of its role, data or index."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Write all that is dirty to the devices, so that what follows starts from rest."""

    @abstractmethod
    def dsn(self) -> str:
        """Where clients connect, in the form that the engine's load driver takes."""

    @abstractmethod
    def counters(self) -> EngineCounters:
        """Read the counters; subtract two readings with :meth:`EngineCounters.since`."""

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """Every setting of the running server with its unit, by name."""

    @abstractmethod
    def version(self) -> str:
        """Version of the server's program; it need not run."""

    @abstractmethod
    def sampler(self) -> WaitSampler:
        """A sampler of what the load's sessions wait for; start it, stop it once."""

    @abstractmethod
    def failure(self) -> str | None:
        """The last grave line of the server's log since it was started (a full disk, a crash), if any."""

    @property
    @abstractmethod
    def server_pid(self) -> int | None:
        """Pid of the server's first process while it runs; ``None`` for an engine without a process."""

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self.server_pid is not None

    @property
    @abstractmethod
    def directories(self) -> Mapping[Role, Path]:
        """Where the files of each placed role are, once there is a database."""

    def require_placeable(self, places: Mapping[Role, Path]) -> None:
        """Refuse places for roles that the engine cannot put anywhere, and places that are not there.

        Raises:
            TierwiseError: naming engine and role, and what can be placed.
        """
        for role, place in places.items():
            if role not in self.roles:
                raise TierwiseError(
                    f"engine {self.name} cannot place the role {role}",
                    f"place only {', '.join(sorted(self.roles))}",
                )
            if not place.is_dir():
                raise TierwiseError(f"{role}: {place} is not a directory", "name an existing directory")
        if Role.SYSTEM not in places:
            raise TierwiseError(f"engine {self.name} has no place for the role system", "give it one")

    def __enter__(self) -> Self:
        """Give the engine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the engine."""
        self.close()
