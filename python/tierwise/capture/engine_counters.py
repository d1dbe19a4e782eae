"""The engine's own counters during a recording: transactions, log bytes, pages.

Each reading has its own session, so that none of ours is open while events are recorded.
"""

from __future__ import annotations

import re
import struct
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tierwise import _core
from tierwise.capture.mysql_session import MysqlSession
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.sql_session import (
    VARIABLE,
    CounterReading,
    Dsn,
    ServerFacts,
    SqlReadError,
    reporting_delay_error,
)
from tierwise.capture.target import RecordingTarget, first_process_of, identify_server
from tierwise.host.cpu import proc_status_text
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_bytes
from tierwise.recording.buffer_content import BufferContent

SqlSession = PostgresSession | MysqlSession
SESSIONS: Mapping[str, type[SqlSession]] = {"postgresql": PostgresSession, "mysql": MysqlSession}
"""Kind of a DSN -> its sessions."""
_CONTROL_FILE = "global/pg_control"
_SYSTEM = struct.Struct("=Q")
"""Beginning of ``ControlFileData`` of PostgreSQL: the system identifier."""
_NUMBER_INSIDE = re.compile(r"^NSpid:.*\s(\d+)$", re.MULTILINE)
_NOT_VERIFIED = (
    "whether the DSN is of the recorded server could not be verified: neither the connection nor the server "
    "tells its process"
)


class EngineCounters:
    """Increases of counters, summed over the windows of a recording."""

    def __init__(self, dsn: Dsn) -> None:
        self.version: str | None = None
        """Of the server."""
        self.settings: Mapping[str, str] = {}
        """Of the server; those that matter to prediction."""
        self.relations: list[dict[str, Any]] = []
        """Tables and indexes by their files, from :meth:`read_relations` on."""
        self.buffer: BufferContent | None = None
        """What the engine's buffer held, from :meth:`read_buffer` on."""
        self._session_type, self._dsn = SESSIONS[dsn.kind], dsn.text
        self._asks_buffer = dsn.buffer_content
        self._before: CounterReading | None = None
        self._began_s = self._counted_s = self._late_s = 0.0
        self._sums = Counter[str]()
        self._remark: str | None = None
        self._unknown: list[str] = []
        self._warning: str | None = None

    @classmethod
    def connect(cls, dsn: Dsn, target: RecordingTarget) -> EngineCounters:
        """Test the connection, and that it leads to the recorded server.

        Raises:
            TierwiseError: if the DSN is for another engine or server, or the counters cannot be read now.
        """
        if dsn.kind != target.rules.counters:
            raise TierwiseError(
                f"a DSN of {dsn.kind} is given, and {target.rules.engine} is recorded",
                f"give its own, or none: unset {VARIABLE}",
            )
        counters = cls(dsn)
        try:
            with closing(SESSIONS[dsn.kind](dsn.text)) as session:
                facts = session.facts(target.rules.settings)
                counters.version, counters.settings = facts.version, facts.settings
                counters._remark = _require_same_server(facts, target)
                session.read()
                if dsn.buffer_content:
                    session.require_buffer_content()
        except SqlReadError as error:
            raise TierwiseError(
                f"the engine's counters cannot be read: {error.detail}",
                "check the DSN and the rights of its user",
            ) from None
        return counters

    def begin(self) -> None:
        """Read the counters at the start of a window."""
        self._before, self._began_s = self._read(), time.monotonic()

    def end(self) -> None:
        """Read the counters at the end of a window and add the increases. No error without a begin."""
        before, self._before = self._before, None
        if before is None or (after := self._read()) is None:
            return
        if (increases := after.since(before)) is None:
            self._give_up(
                "its statistics were reset, a database was dropped, it was restarted, or the DSN led "
                "elsewhere, while it was recorded"
            )
        else:
            self._sums.update(increases)
            self._counted_s += time.monotonic() - self._began_s
            self._late_s += self._session_type.late_s

    def read_relations(self) -> None:
        """Ask for the names of tables and indexes; where there is no answer, the recording says so."""
        try:
            with closing(self._session_type(self._dsn)) as session:
                self.relations = session.relations()
                self._unknown = session.limits
        except SqlReadError as error:
            self._unknown = [f"the names of tables and indexes are not known: {error.reason}"]

    def read_buffer(self) -> None:
        """Ask for the content of the buffer, if that was wanted; without an answer, the recording says so."""
        if not self._asks_buffer:
            return
        try:
            with closing(self._session_type(self._dsn)) as session:
                self.buffer = session.buffer_content()
        except SqlReadError as error:
            self._unknown.append(f"the content of the buffer is not known: {error.reason}")
        except TierwiseError:  # what was checked at the start does not hold any more
            self._unknown.append("the content of the buffer is not known: the server no longer gives it")

    @property
    def counts(self) -> dict[str, int]:
        """Counter name -> increase; empty if a reading failed."""
        return {} if self._warning else dict(self._sums)

    @property
    def transactions(self) -> int | None:
        """Transactions that ended, committed or rolled back; ``None`` if they were not counted."""
        return self._session_type.transactions(self._sums) if self.counts else None

    @property
    def warnings(self) -> list[str]:
        """What could not be verified, and why counts are missing: sentences without host and user."""
        late = reporting_delay_error(self._late_s, self._counted_s) if self.counts else None
        uncounted = self._session_type.uncounted(self._sums) if self.counts else None
        sentences = [self._remark, *self._unknown, self._warning, uncounted, late]
        return [sentence for sentence in sentences if sentence is not None]

    def _read(self) -> CounterReading | None:
        if self._warning is not None:
            return None
        try:
            with closing(self._session_type(self._dsn)) as session:
                return session.read()
        except SqlReadError as error:
            self._give_up(error.reason)
            return None

    def _give_up(self, reason: str) -> None:
        self._warning = (
            f"the engine's counters were not used: {reason}; transactions are counted from the events alone"
        )


def _require_same_server(facts: ServerFacts, target: RecordingTarget) -> str | None:
    """Compare the server of an open session with the recorded one; a sentence if nothing can be told.

    The process at the other end of the connection decides. Behind a pooler, a proxy or another network, the
    process that the server names decides, by the number that it has in the server's own process namespace.

    Raises:
        TierwiseError: if it is another server, naming both.
    """
    recorded = target.processes()
    if set(facts.peers) & set(recorded):
        return None
    for peer in facts.peers:
        other = first_process_of(peer)
        if other is not None and other not in recorded:
            raise _other_server_error(facts, target, other)
    system = _system_identifier_of(target)
    if None not in (facts.system, system) and facts.system != system:
        raise _other_server_error(facts, target)
    if facts.task is None:
        return _NOT_VERIFIED
    if facts.task not in _thread_ids_in_namespace(recorded):
        raise _other_server_error(facts, target)
    return None


def _other_server_error(
    facts: ServerFacts, target: RecordingTarget, other: int | None = None
) -> TierwiseError:
    first = target.pid or next(iter(target.processes()), None)
    ours = "gone" if first is None else identify_server(first, target.rules)["described"]
    theirs = f"data directory {facts.data_directory}" if facts.data_directory else "which names no directory"
    fix = "give the DSN of the recorded server"
    if other is not None:
        theirs, fix = _core.servers_listed([other]), f"{fix}, or --pid {other}"
    return TierwiseError(f"--dsn: its server is another one, {theirs}; the recorded one is {ours}", fix)


def _thread_ids_in_namespace(pids: Iterable[int]) -> set[int]:
    """Numbers of the threads of processes as they see them themselves."""
    numbers, threads = set(), list[Path]()
    for pid in pids:
        with suppress(OSError):
            threads += Path(f"/proc/{pid}/task").iterdir()
    for thread in threads:
        with suppress(OSError):
            if match := _NUMBER_INSIDE.search(proc_status_text(thread)):
                numbers.add(int(match[1]))
    return numbers


def _system_identifier_of(target: RecordingTarget) -> str | None:
    """System identifier of the recorded PostgreSQL, by its control file."""
    pids = target.processes()
    if not pids or target.rules.counters != "postgresql":
        return None
    try:
        directory = Path(f"/proc/{pids[0]}/cwd").readlink()
        control = _core.path_within(target.root, directory / _CONTROL_FILE)
        (system,) = _SYSTEM.unpack_from(read_bytes(control, "", in_folder=True))
        return str(system)
    except (OSError, TierwiseError, struct.error):
        return None
