"""What all engines have: a process with a home, and directories of the placed roles."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path

from tierwise.host import ledger, processes, users
from tierwise.host.programs import PrivateDirectory
from tierwise.host.users import ServerUser
from tierwise.model.placement import Role

_CRASH_TIMEOUT_S = 10


class RoleDirectories:
    """New directories under the places of the roles, owned by the engine's user, entered in the ledger."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._user: ServerUser | None = None
        self._made: dict[Role, ledger.LedgerDirectory] = {}
        self._beside: list[tuple[Role, ledger.LedgerDirectory]] = []

    @property
    def paths(self) -> Mapping[Role, Path]:
        """The directory of each role that has one."""
        return {role: made.path for role, made in self._made.items()}

    @property
    def owned(self) -> Iterator[tuple[Role, Path]]:
        """Every directory, also those beside a role's own, with the role whose place it is in."""
        return ((role, made.path) for role, made in (*self._made.items(), *self._beside))

    def make(self, places: Mapping[Role, Path], user: ServerUser | None) -> None:
        """Make one directory for each role, owned by ``user`` as all that are made beside them."""
        self._user = user
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

    def _make(self, label: str, place: Path) -> ledger.LedgerDirectory:
        users.require_reachable(label, place, self._user)
        return ledger.make_directory(
            f"{self._prefix}-{label}", parent=place, owner=users.account_ids(self._user)
        )


class EngineProcess(ABC):
    """The process of an engine, which runs as its user, and a home off the placed devices."""

    _crash_signal = signal.SIGKILL

    def __init__(self, name: str, prefix: str, user: ServerUser | None) -> None:
        self._name, self.user = name, user
        self._home = PrivateDirectory(f"{prefix}-home", user)
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
        self._disconnect()  # first: what interrupts it leaves the process to be ended
        process, self._process = self._process, None
        return process
