"""What all engines share: a process with a home, directories of the placed roles, a start and an end."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from tierwise.host import ledger, page_cache, processes, users
from tierwise.host.programs import Home
from tierwise.host.users import ServerUser
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.commits import CommitLedger
from tierwise.lab.engines.documented import Salvage, checked
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

_CRASH_TIMEOUT_S = 10


class RoleDirectories:
    """New directories under the places of the roles, owned by the engine's user, entered in the ledger."""

    def __init__(self, prefix: str, user: ServerUser | None) -> None:
        self._prefix, self._user = prefix, user
        self._made: dict[Role, ledger.Directory] = {}
        self._beside: list[tuple[Role, ledger.Directory]] = []

    @property
    def paths(self) -> Mapping[Role, Path]:
        """The directory of each role that has one."""
        return {role: made.path for role, made in self._made.items()}

    @property
    def owned(self) -> Iterator[tuple[Role, Path]]:
        """Every directory, also those beside a role's own, with the role whose place it is in."""
        return ((role, made.path) for role, made in (*self._made.items(), *self._beside))

    def make(self, places: Mapping[Role, Path]) -> None:
        """Make one directory for each role."""
        for role, place in places.items():
            self._made[role] = self._make(role, place)

    def make_beside(self, role: Role, label: str) -> Path:
        """Make one more directory in the place of a role, or in the system's place if the role has none."""
        beside = role if role in self._made else Role.SYSTEM
        made = self._make(label, self._made[beside].path.parent)
        self._beside.append((beside, made))
        return made.path

    def remove(self) -> None:
        """Delete the directories with all their files."""
        for made in (*self._made.values(), *(made for _, made in self._beside)):
            made.remove()
        self._made.clear()
        self._beside.clear()

    def _make(self, label: str, place: Path) -> ledger.Directory:
        users.require_reachable(label, place, self._user)
        return ledger.directory(f"{self._prefix}-{label}", parent=place, owner=users.ids(self._user))


class EngineProcess(ABC):
    """The process of an engine, which runs as its user, and a home off the placed devices."""

    _crash_signal = signal.SIGKILL

    def __init__(self, name: str, prefix: str, user: ServerUser | None) -> None:
        self._name, self.user = name, user
        self._home = Home(f"{prefix}-home", user)
        self._process: processes.Process | None = None

    @property
    def home(self) -> Path:
        """The user's directory outside the storage under test, for files without a role."""
        return self._home.own

    @property
    def pid(self) -> int | None:
        """Pid of the first process while it runs."""
        return self._process.pid if self._process is not None and self._process.running else None

    @abstractmethod
    def failure(self) -> str | None:
        """What the process wrote last of a failure since its start, if anything."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the connection to the process, if there is one."""

    def crash_stop(self) -> None:
        """End it without further writes; SIGKILL if that takes long. No error if it is down."""
        if (process := self._leave()) is not None:
            process.signal(self._crash_signal)
            process.wait_or_kill(_CRASH_TIMEOUT_S)

    def abort(self) -> None:
        """Signal the process to end without further writes; whoever works with it sees an error."""
        if (process := self._process) is not None:
            process.signal(self._crash_signal)

    def remove(self) -> None:
        """End the process if it runs and delete the home."""
        self.crash_stop()
        self._home.remove()

    def _leave(self) -> processes.Process | None:
        """Disconnect and give the process to the caller, which ends it."""
        process, self._process = self._process, None
        self._disconnect()
        return process

    def _down(self) -> TierwiseError:
        return TierwiseError(f"engine {self._name} does not run", "start it first")


ProcessT = TypeVar("ProcessT", bound=EngineProcess)


class ProcessEngine(Engine, Generic[ProcessT]):
    """An engine in a process of its own.

    Called by root, it runs as tierwise's own account; called by a user, as that user.
    """

    _timeout_s: ClassVar = 600.0
    """Longest wait for a start with its recovery, and for a stop with its checkpoint."""

    def __init__(self, name: str, kind: str, settings: Mapping[str, str] | None) -> None:
        self.name = name
        self._given = checked(name, settings or {}, self.allowed_settings())
        self._user = users.server_user()
        self._made = RoleDirectories(kind, self._user)
        self._process: ProcessT | None = None

    @abstractmethod
    def _make_process(self) -> ProcessT:
        """Make the home of the process; do not start it."""

    @abstractmethod
    def _make_database(self, process: ProcessT) -> None:
        """Make an empty database in the directories, and leave the process down."""

    @abstractmethod
    def _start_with(self, changes: Mapping[str, str]) -> None:
        """Start, with some settings changed."""

    def init(self, places: Mapping[Role, Path]) -> None:
        """Make the directories, then the database in them."""
        self.require_placeable(places)
        try:
            self._made.make(places)
            self._process = self._make_process()
            self._make_database(self._process)
        except BaseException:
            self.close()
            raise
        page_cache.write_out(self.directories.values())

    def start(self) -> None:
        """Start the process and wait until it answers."""
        if not self.running:
            self._start_with({})

    def start_salvaged(self, step: Salvage) -> None:
        """Start with the settings of a step, then run its statements as the load does."""
        self._start_with(step.settings)
        self.execute_schema((Role.SYSTEM, statement) for statement in step.statements)

    def crash_stop(self) -> None:
        """End the process without a checkpoint."""
        if self._process is not None:
            self._process.crash_stop()

    def abort(self) -> None:
        """Signal the process; its state here stays as it is."""
        if self._process is not None:
            self._process.abort()

    def close(self) -> None:
        """End the process if it runs and delete its directories."""
        if self._process is not None:
            self._process.remove()
            self._process = None
        self._made.remove()

    def commit_ledger(self, clients: int) -> CommitLedger:
        """An empty ledger in the home of the process."""
        return CommitLedger.make(self._known_process().home / "commits", clients, self._user)

    @property
    def server_pid(self) -> int | None:
        """Pid of the first process while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def directories(self) -> Mapping[Role, Path]:
        """One directory for each placed role."""
        return self._made.paths

    @property
    def owned_directories(self) -> Iterable[tuple[Role, Path]]:
        """These and, of some servers, one more beside a role's own."""
        return self._made.owned

    def _known_process(self) -> ProcessT:
        if self._process is None:
            raise TierwiseError(f"engine {self.name} has no database", "init it first")
        return self._process
