"""A database server that may be restarted between two recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierwise import _core
from tierwise._core import Rules
from tierwise.capture.rules import program_of
from tierwise.capture.target import Target, of_pid
from tierwise.host import ledger
from tierwise.model.errors import TierwiseError


class Server:
    """The server with a pid; after a restart, the one with its program, user and working directory."""

    def __init__(self, pid: int, rules: Rules | None = None, roles: Sequence[str] = ()) -> None:
        """Remember how to find it again.

        Args:
            pid: of its first process.
            rules: of its files' roles; by default those of its program.
            roles: roles of files that go before the rules, as ``PATH=ROLE``.

        Raises:
            TierwiseError: if there is no such process, or no rules for its engine.
        """
        of_pid(pid, rules, roles)
        self.pid, self._rules, self._roles = pid, rules, roles
        self._identity = ledger.Identity.of(pid)
        self._program, self._place = program_of(pid), _place_of(pid)

    def restarted(self) -> bool:
        """Whether another process has taken its place; ``pid`` is then that one's.

        Raises:
            TierwiseError: if it does not run.
        """
        if self._identity is not None and self._identity.alive:
            return False
        found = [pid for pid in _core.first_processes([self._program]) if _place_of(pid) == self._place]
        if len(found) != 1:
            raise TierwiseError(f"the database ({self._program}) does not run", "start it")
        self.pid, self._identity = found[0], ledger.Identity.of(found[0])
        return True

    def target(self) -> Target:
        """The processes to record.

        Raises:
            TierwiseError: if it does not run.
        """
        return of_pid(self.pid, self._rules, self._roles)


def _place_of(pid: int) -> tuple[int, str] | None:
    """User and working directory of a process; ``None`` if it is gone."""
    process = Path(f"/proc/{pid}")
    try:
        return process.stat().st_uid, str((process / "cwd").readlink())
    except OSError:
        return None
