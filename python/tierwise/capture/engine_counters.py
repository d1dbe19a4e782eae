"""The engine's own counters during a recording: transactions, log bytes, pages.

Each reading has its own connection, so that no session of ours is open while events are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tierwise._core import Rules
from tierwise.capture import mysql_counters, postgres_counters
from tierwise.capture.counter_reading import Reading, UnreadableError
from tierwise.capture.dsn import VARIABLE, Dsn
from tierwise.capture.same_server import require_same
from tierwise.capture.server_session import ServerSession, session_of
from tierwise.capture.target import Target
from tierwise.model.errors import TierwiseError

_READERS: Mapping[str, Callable[[str], Reading]] = {
    "postgresql": postgres_counters.read,
    "mysql": mysql_counters.read,
}
_TRANSACTIONS: Mapping[str, Callable[[Mapping[str, int]], int]] = {
    "postgresql": postgres_counters.transactions,
    "mysql": mysql_counters.transactions,
}
_NO_COUNTS = "transactions are counted from the events alone"


@dataclass
class EngineCounters:
    """Increases of counters, summed over the windows of a recording."""

    dsn: Dsn
    version: str | None = None
    """Of the server."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the server; those that matter to prediction."""
    remarks: list[str] = field(default_factory=list)
    """What could not be verified, as sentences."""
    _before: Reading | None = None
    _sums: dict[str, int] = field(default_factory=dict)
    _warning: str | None = None

    @classmethod
    def connect(cls, dsn: Dsn, rules: Rules, target: Target | None = None) -> EngineCounters:
        """Test the connection, and that it leads to the recorded server.

        Args:
            dsn: of the recorded server.
            rules: of its engine.
            target: the recorded server, if it is known: the DSN must be its own.

        Raises:
            TierwiseError: if the DSN is for another engine or server, or the counters cannot be read now.
        """
        remarks = list[str | None]()

        def seen(session: ServerSession) -> None:
            remarks.append(None if target is None else require_same(session, target))

        if dsn.kind != rules.counters:
            raise TierwiseError(
                f"a DSN of {dsn.kind} is given, and {rules.engine} is recorded",
                f"give its own, or none: unset {VARIABLE}",
            )
        try:
            session = session_of(dsn, rules.settings, seen)
            _READERS[dsn.kind](dsn.text)
        except UnreadableError as error:
            raise TierwiseError(
                f"the engine's counters cannot be read: {error.detail}",
                "check the DSN and the rights of its user",
            ) from None
        told = [remark for remark in remarks if remark is not None]
        return cls(dsn, session.version, session.settings, told)

    def begin(self) -> None:
        """Read the counters at the start of a window."""
        self._before = self._read()

    def end(self) -> None:
        """Read the counters at the end of a window and add the increases. No error without a begin."""
        before, self._before = self._before, None
        if before is None or (after := self._read()) is None:
            return
        if before.origin != after.origin or any(
            after.counts[name] < count for name, count in before.counts.items()
        ):
            self._give_up(
                "its statistics were reset, it was restarted, or the DSN led elsewhere, while it was recorded"
            )
            return
        for name, count in after.counts.items():
            self._sums[name] = self._sums.get(name, 0) + count - before.counts[name]

    @property
    def counts(self) -> dict[str, int]:
        """Counter name -> increase; empty if a reading failed."""
        return {} if self._warning else dict(self._sums)

    @property
    def transactions(self) -> int | None:
        """Transactions that ended, committed or rolled back; ``None`` if they were not counted."""
        return _TRANSACTIONS[self.dsn.kind](self._sums) if self.counts else None

    @property
    def warnings(self) -> list[str]:
        """The reason for missing counts, if any: one sentence that names neither host nor user."""
        return [*self.remarks, *([self._warning] if self._warning else [])]

    def _read(self) -> Reading | None:
        if self._warning is not None:
            return None
        try:
            return _READERS[self.dsn.kind](self.dsn.text)
        except UnreadableError as error:
            self._give_up(error.reason)
            return None

    def _give_up(self, reason: str) -> None:
        self._warning = f"the engine's counters were not used: {reason}; {_NO_COUNTS}"


def described(counters: EngineCounters | None) -> dict[str, Any]:
    """The sections of ``about.json`` that come from counters."""
    if counters is None:
        return {}
    return {"counters": counters.counts, "transactions": counters.transactions}
