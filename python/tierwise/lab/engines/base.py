"""The interface of a database engine."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from tierwise.host import page_cache
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.conditions import ColdStart
from tierwise.results.faults import IntegrityCheck
from tierwise.results.measurements import Counters, SpaceUse

if TYPE_CHECKING:
    from tierwise.lab.engines.commits import CommitLedger, Found
    from tierwise.lab.engines.documented import DurabilitySetting, Salvage
    from tierwise.results.wait_sampling import WaitSampler


@dataclass(frozen=True)
class Limits:
    """Resources that an engine sizes itself for, unless its settings say otherwise."""

    memory_bytes: int | None = None
    """Of all server processes together, page cache included."""
    parallelism: int | None = None
    """Processes or threads that may work on one statement."""
    sessions: int | None = None
    """Clients of the load at a time; the engine leaves room for tierwise's own sessions besides."""


class Confinement(Protocol):
    """A resource limit for a server's processes."""

    def confine(self, pid: int) -> None:
        """Confine a process and the children that it forks later."""


class Clients(Protocol):
    """Connected clients of one program, ready to run again and again."""

    def run(
        self,
        transactions: int | None = None,
        seconds: float | None = None,
        *,
        transaction: str | None = None,
        cap_s: float | None = None,
    ) -> str:
        """Run up to a total number of transactions or for a time; gives the report as JSON.

        Args:
            transaction: run only this transaction, as a lap does, instead of the mix.
            cap_s: stop what is still running after this time; the report says ``capped``.
        """

    def reconnect(self) -> None:
        """Close every session and open new ones, which discards session caches."""

    def close(self) -> None:
        """End the sessions."""


class Engine(ABC):
    """One private database, on directories that a placement chose.

    Life cycle: :meth:`init`, then any number of :meth:`start` with :meth:`stop` or :meth:`crash_stop`, then
    :meth:`close`. As a context manager it closes itself. Every method raises :class:`TierwiseError` with one
    line that names the cause, and leaves nothing running when it does.
    """

    roles: ClassVar[frozenset[Role]]
    """The roles that the engine can place separately."""

    dialect: ClassVar[str]
    """Dialect of its statements: one that sqlglot knows, or ``objects``."""

    unsupported: ClassVar[Mapping[str, str]] = {}
    """What the engine cannot do, each with the reason."""

    inside: ClassVar[Mapping[Role, Role]] = {}
    """Roles without files of their own here, each with the role whose files contain it."""

    name: str
    limits: Limits = Limits()
    """Set before :meth:`init`."""
    confinement: Confinement | None = None
    """Set before :meth:`start`; each start confines the new server process."""
    on_loaded: Callable[[int], None] | None = None
    """Called about once a second during :meth:`load_tables` with the rows so far, unless a worker loads."""

    @abstractmethod
    def init(self, places: Mapping[Role, Path]) -> None:
        """Make an empty database, each role in a new directory under its place; leave the server down.

        Several roles may share a place. ``Role.SYSTEM`` must have one; roles without a place go with it.
        """

    @abstractmethod
    def start(self) -> None:
        """Start the server, recover after a crash, and wait until it accepts work."""

    @abstractmethod
    def start_salvaged(self, step: Salvage) -> None:
        """Start as the engine's makers advise after the loss of a role's files (:mod:`.salvage`)."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server cleanly, so that no recovery is needed. No error if it is down."""

    @abstractmethod
    def crash_stop(self) -> None:
        """End the server at once without further writes, like a crash. No error if it is down."""

    @abstractmethod
    def abort(self) -> None:
        """Let the server end as in :meth:`crash_stop`, from any thread: what another does with it fails."""

    def restart_cold(self, *, drop_caches: bool = False) -> ColdStart:
        """Stop the server, make its files cold, start it again: both caches are cold.

        Args:
            drop_caches: drop the caches of the whole machine, other programs' too; only if the user says so.

        Returns:
            How caches were emptied while the server was down, and what stayed in them.
        """
        self.stop()
        cold = page_cache.make_cold(self.owned_directories, drop_caches=drop_caches)
        self.start()
        return cold

    @abstractmethod
    def check_settings(self) -> None:
        """Check the settings with the engine's own program, which leaves nothing; call it before ``init``.

        Raises:
            TierwiseError: naming the setting and what the program says of it.
        """

    @abstractmethod
    def close(self) -> None:
        """End the server if it runs and delete all its files. Faster after its disks are gone."""

    @abstractmethod
    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Run statements in order; each object goes to the place of its role, data or index."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Write all dirty pages to the devices, so that the next phase starts from rest."""

    @abstractmethod
    def clients(self, program_json: str, clients: int, seed: int) -> Clients:
        """Connect ``clients`` clients that run the transactions of a program."""

    @abstractmethod
    def load_tables(self, program_json: str, seed: int) -> int:
        """Fill the tables of a program; gives the number of rows."""

    @abstractmethod
    def role_of(self, path: Path) -> Role | None:
        """Role of one of the engine's files by the engine's own rules, in any directory.

        ``None`` for files outside the database: programs, sockets, the server's own log.
        """

    @abstractmethod
    def processes(self) -> list[int]:
        """Pids of all processes that work for the engine now; none while it is down."""

    @abstractmethod
    def counters(self) -> Counters:
        """Read the counters; subtract two readings with :meth:`Counters.since`."""

    def space(self) -> SpaceUse | None:
        """Space that the database takes now; ``None`` if the engine cannot tell."""
        return None

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """Every setting of the running server with its unit, by name."""

    @abstractmethod
    def version(self) -> str:
        """Version of the server's program; works without a running server."""

    @abstractmethod
    def sampler(self) -> WaitSampler:
        """A sampler of the waits of the load's sessions; start it, stop it once."""

    @abstractmethod
    def failure(self) -> str | None:
        """The last severe line of the server's log since its start (a full disk, a crash), if any."""

    @classmethod
    def durability(cls) -> list[DurabilitySetting]:
        """The engine's ways to commit, the safest first, from ``durability.toml`` in its folder."""
        from tierwise.lab.engines.documented import load

        return load(Path(inspect.getfile(cls)).parent)

    @classmethod
    def allowed_settings(cls) -> frozenset[str]:
        """Names of the settings that a study may give, from ``settings.toml`` in the engine's folder."""
        from tierwise.lab.engines import documented

        return documented.listed_in(Path(inspect.getfile(cls)).parent)

    @abstractmethod
    def make_commit_tables(self, clients: int) -> None:
        """Make and fill the tables of the load of commits (:mod:`tierwise.lab.engines.commits`)."""

    @abstractmethod
    def commit_ledger(self, clients: int) -> CommitLedger:
        """An empty ledger, off the placed devices, in place of the last one."""

    @abstractmethod
    def commit_until_it_fails(self, ledger: CommitLedger, client: int, first: int) -> None:
        """Commit the numbers from ``first`` on in a session of its own, until the server or its disk fails.

        Raises:
            TierwiseError: with the failure; the ledger holds what was acknowledged before.
        """

    @abstractmethod
    def found_commits(self) -> Found:
        """Read the tables of the load of commits in full."""

    @abstractmethod
    def check(self) -> IntegrityCheck:
        """Run the engine's own check of its files."""

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
        """Directory of each placed role, once there is a database."""

    @property
    def owned_directories(self) -> Iterable[tuple[Role, Path]]:
        """Every directory of the database, with the role of its files."""
        return self.directories.items()

    def _confine(self) -> None:
        """Confine a just-started server, if a confinement is set."""
        if self.confinement is not None and self.server_pid is not None:
            self.confinement.confine(self.server_pid)

    def require_placeable(self, places: Mapping[Role, Path]) -> None:
        """Refuse roles that the engine cannot place separately, and places that do not exist.

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
