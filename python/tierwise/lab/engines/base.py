"""The interface of a database engine."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypeVar

from tierwise.host import page_cache, users
from tierwise.lab.engines import engine_documentation
from tierwise.lab.engines.commit_load import CommitLedger, FoundCommits
from tierwise.lab.engines.engine_documentation import DurabilitySetting, SalvageGuide, SalvageStep
from tierwise.lab.engines.process_engine import EngineProcess, RoleDirectories
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results.conditions import ColdStart
from tierwise.results.fault_results import IntegrityCheck
from tierwise.results.measurements import Counters

if TYPE_CHECKING:
    from tierwise.host.cgroups import MemoryLimit
    from tierwise.host.users import ServerUser
    from tierwise.results.wait_sampling import WaitSampler


@dataclass(frozen=True)
class ResourceLimits:
    """Resources that an engine sizes itself for, unless its settings say otherwise."""

    memory_bytes: int | None = None
    """Of all server processes together, page cache included."""
    parallelism: int | None = None
    """Processes or threads that may work on one statement."""
    sessions: int | None = None
    """Clients of the load at a time; the engine leaves room for tierwise's own sessions besides."""


class ConnectedClients(Protocol):
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
    """One private database in a process of its own, on directories that a placement chose.

    Called by root, it runs as tierwise's own account; called by a user, as that user.

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

    _timeout_s: ClassVar = 600.0
    """Longest wait for a start with its recovery, and for a stop with its checkpoint."""

    limits: ResourceLimits = ResourceLimits()
    """Set before :meth:`init`."""
    confinement: MemoryLimit | None = None
    """Set before :meth:`start`; each start confines the new server process."""
    on_loaded: Callable[[int], None] | None = None
    """Called about once a second during :meth:`load_tables` with the rows so far, unless a worker loads."""

    def __init__(self, name: str, kind: str, settings: Mapping[str, str] | None) -> None:
        self.name = name
        self._given = engine_documentation.checked_settings(name, settings or {}, self.allowed_settings())
        self._made = RoleDirectories(kind)
        self._process: EngineProcess | None = None

    @cached_property
    def _user(self) -> ServerUser | None:
        """What the process runs as. On first use: an engine that is only asked about makes no account."""
        return users.server_user()

    @abstractmethod
    def _make_process(self) -> EngineProcess:
        """Make the home of the process; do not start it."""

    @abstractmethod
    def _make_database(self) -> None:
        """Make an empty database in the directories, and leave the process down."""

    @abstractmethod
    def _start_with(self, changes: Mapping[str, str]) -> None:
        """Start, with some settings changed."""

    def init(self, places: Mapping[Role, Path]) -> None:
        """Make an empty database, each role in a new directory under its place; leave the server down.

        Several roles may share a place. ``Role.SYSTEM`` must have one; roles without a place go with it.
        """
        self.require_placeable(places)
        try:
            self._made.make(places, self._user)
            self._process = self._make_process()
            self._make_database()
        except BaseException:
            self.close()
            raise
        page_cache.write_out_dirty_pages(self.directories.values())

    def start(self) -> None:
        """Start the server, recover after a crash, and wait until it accepts work."""
        if not self.running:
            self._start_with({})

    def start_salvaged(self, step: SalvageStep) -> None:
        """Start as the engine's makers advise after the loss of a role's files (:mod:`.documented`)."""
        self._start_with(step.settings)
        self.execute_schema((Role.SYSTEM, statement) for statement in step.statements)

    @abstractmethod
    def stop(self) -> None:
        """Stop the server cleanly, so that no recovery is needed. No error if it is down."""

    def crash_stop(self) -> None:
        """End the server at once without further writes, like a crash. No error if it is down."""
        if self._process is not None:
            self._process.crash_stop()

    def abort(self) -> None:
        """Let the server end as in :meth:`crash_stop`, from any thread: what another does with it fails."""
        if self._process is not None:
            self._process.abort()

    def restart_cold(self, *, drop_caches: bool = False) -> ColdStart:
        """Stop the server, make its files cold, start it again: both caches are cold.

        Args:
            drop_caches: drop the caches of the whole machine, other programs' too; only if the user says so.

        Returns:
            How caches were emptied while the server was down, and what stayed in them.
        """
        self.stop()
        cold = page_cache.make_caches_cold(self.owned_directories, drop_caches=drop_caches)
        self.start()
        return cold

    @abstractmethod
    def check_settings(self) -> None:
        """Check the settings with the engine's own program, which leaves nothing; call it before ``init``.

        Raises:
            TierwiseError: naming the setting and what the program says of it.
        """

    def close(self) -> None:
        """End the server if it runs and delete all its files. Faster after its disks are gone."""
        if self._process is not None:
            self._process.remove()
            self._process = None
        self._made.remove()

    @abstractmethod
    def execute_schema(self, statements: Iterable[tuple[Role, str]]) -> None:
        """Run statements in order; each object goes to the place of its role, data or index."""

    @abstractmethod
    def checkpoint(self) -> None:
        """Write all dirty pages to the devices, so that the next phase starts from rest."""

    @abstractmethod
    def clients(self, program_json: str, clients: int, seed: int) -> ConnectedClients:
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
        return engine_documentation.load_durability_settings(cls._folder())

    @classmethod
    def allowed_settings(cls) -> frozenset[str]:
        """Names of the settings that a study may give, from ``settings.toml`` in the engine's folder."""
        return engine_documentation.settings_listed_in(cls._folder())

    @classmethod
    def guide(cls) -> SalvageGuide:
        """How to start without some files, from ``salvage.toml`` in its folder; no steps without that."""
        return engine_documentation.salvage_guide(cls._folder())

    @classmethod
    def _folder(cls) -> Path:
        return Path(inspect.getfile(cls)).parent

    @abstractmethod
    def make_commit_tables(self, clients: int) -> None:
        """Make and fill the tables of the load of commits (:mod:`tierwise.lab.engines.commit_load`)."""

    def commit_ledger(self, clients: int) -> CommitLedger:
        """An empty ledger, off the placed devices, in place of the last one."""
        if self._process is None:
            raise TierwiseError(f"engine {self.name} has no database", "init it first")
        return CommitLedger.make(self._process.home / "commits", clients, self._user)

    @abstractmethod
    def commit_until_it_fails(self, ledger: CommitLedger, client: int, first: int) -> None:
        """Commit the numbers from ``first`` on in a session of its own, until the server or its disk fails.

        Raises:
            TierwiseError: with the failure; the ledger holds what was acknowledged before.
        """

    @abstractmethod
    def found_commits(self) -> FoundCommits:
        """Read the tables of the load of commits in full."""

    @abstractmethod
    def check(self) -> IntegrityCheck:
        """Run the engine's own check of its files."""

    @property
    def server_pid(self) -> int | None:
        """Pid of the server's first process while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self.server_pid is not None

    @property
    def directories(self) -> Mapping[Role, Path]:
        """Directory of each placed role, once there is a database."""
        return self._made.paths

    @property
    def owned_directories(self) -> Iterable[tuple[Role, Path]]:
        """These and, of some servers, one more beside a role's own, each with the role of its files."""
        return self._made.owned

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


ProcessT = TypeVar("ProcessT", bound=EngineProcess)


class ProcessEngine(Engine, Generic[ProcessT]):
    """An engine whose process is of a known class."""

    _process: ProcessT | None

    @abstractmethod
    def _make_process(self) -> ProcessT: ...

    def _known_process(self) -> ProcessT:
        if self._process is None:
            raise TierwiseError(f"engine {self.name} has no database", "init it first")
        return self._process
