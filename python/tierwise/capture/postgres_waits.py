"""What sessions of PostgreSQL wait for: classes of its wait events, and the files that they name."""

from __future__ import annotations

from collections.abc import Mapping

from tierwise.capture.sql_session import SessionState
from tierwise.model.placement import Role
from tierwise.results import WaitClass

_EVENTS: Mapping[WaitClass, str] = {
    "log_sync": "IO:WalSync IO:WalWrite IO:WalInitSync IO:WalInitWrite IO:WalSyncMethodAssign IPC:SyncRep",
    "log_lock": "LWLock:WALWrite LWLock:WALInsert LWLock:WALBufMapping",
    "data_read": """
        IO:DataFileRead IO:DataFilePrefetch IO:AioIoCompletion IO:AioIoUringExecution IO:AioIoUringSubmit
        IO:BuffileRead IO:SlruRead IO:RelationMapRead IPC:BufferIo
        LWLock:AioUringCompletion LWLock:AioWorkerSubmissionQueue""",
    "data_write": """
        IO:DataFileWrite IO:DataFileExtend IO:DataFileFlush IO:DataFileSync IO:DataFileImmediateSync
        IO:DataFileTruncate IO:BuffileWrite IO:BuffileTruncate IO:SlruWrite IO:SlruSync IO:SlruFlushSync
        IO:RelationMapWrite IO:RelationMapReplace IO:CopyFileWrite IO:CopyFileCopy""",
    "lock": "IPC:XactGroupUpdate IPC:ProcarrayGroupUpdate IPC:BtreePage Timeout:SpinDelay",
}
"""Events by class, as pg_wait_events of PostgreSQL 18 spells them.

Up to PostgreSQL 16 the same names differ only in case (WALSync, BufferIO, SLRURead), so case is ignored.
SyncRep is the wait for the second member of the log. A wait for asynchronous I/O counts as a read: PostgreSQL
18 uses it only for reads.
"""

_TYPES: Mapping[str, WaitClass] = {
    "client": "client",
    "lock": "lock",
    "lwlock": "lock",
    "bufferpin": "lock",
    "buffer": "lock",
}
"""Classes of whole event types, for events not listed above; every other type is ``other``."""

_CLASS_OF: Mapping[str, WaitClass] = {
    event.lower(): name for name, events in _EVENTS.items() for event in events.split()
}


def classify_session(
    state: str | None, event_type: str | None, event: str | None, process_state: str | None = None
) -> WaitClass:
    """The class of a session.

    Args:
        state: as in pg_stat_activity, like the next two.
        event_type: ``None`` while there is no wait.
        event: ``None`` while there is no wait.
        process_state: of proc_pid_stat(5). ``R`` (running or runnable) overrides the rest: a woken session
            still shows its last wait until it runs, and a session that has received a request still shows
            the wait for its client.
    """
    if process_state == "R":
        return "cpu"
    if state is None or state == "disabled":
        return "other"
    if state.startswith("idle"):
        return "client"
    if event_type is None:
        return "cpu"
    exact = _CLASS_OF.get(f"{event_type}:{event}".lower())
    return exact or _TYPES.get(event_type.lower(), "other")


def postgres_session_state(state: str | None, event_type: str | None, event: str | None) -> SessionState:
    """The state of a session, from pg_stat_activity."""
    wait = classify_session(state, event_type, event)
    if wait == "client":
        return SessionState("Client:ClientRead", wait, None)
    if wait == "cpu":
        return SessionState("active", wait, None)
    name = (event or "").lower()
    if name == "syncrep":  # for a standby and its network: not for a device of this server
        return SessionState(f"{event_type}:{event}", "other", None)
    return SessionState(f"{event_type}:{event}", wait, _role(wait, name))


def _role(wait_class: WaitClass, event: str) -> Role | None:
    """Role of the file that a wait is for; reads of pages are those of tables until they are split."""
    if wait_class in ("log_sync", "log_lock"):
        return Role.LOG
    if wait_class not in ("data_read", "data_write"):
        return None
    if event.startswith("buffile"):
        return Role.TEMP
    return Role.SYSTEM if event.startswith(("slru", "relationmap")) else Role.DATA
