"""Wait classes of PostgreSQL's events and sessions."""

from __future__ import annotations

import pytest

from tierwise.capture.postgres_waits import classify_session
from tierwise.results import WaitClass

POSTGRES_15 = {
    ("IO", "WALSync"): "log_sync",
    ("IO", "WALWrite"): "log_sync",
    ("IO", "WALInitSync"): "log_sync",
    ("LWLock", "WALWrite"): "log_lock",
    ("LWLock", "WALInsert"): "log_lock",
    ("LWLock", "WALBufMapping"): "log_lock",
    ("IO", "DataFileRead"): "data_read",
    ("IO", "BufFileRead"): "data_read",
    ("IPC", "BufferIO"): "data_read",
    ("IO", "SLRURead"): "data_read",
    ("IO", "DataFileExtend"): "data_write",
    ("IO", "SLRUFlushSync"): "data_write",
    ("Lock", "transactionid"): "lock",
    ("Lock", "tuple"): "lock",
    ("LWLock", "BufferContent"): "lock",
    ("BufferPin", "BufferPin"): "lock",
    ("IPC", "XactGroupUpdate"): "lock",
    ("Client", "ClientRead"): "client",
    ("Timeout", "PgSleep"): "other",
    ("IPC", "ExecuteGather"): "other",
}
"""A sample of the names in PostgreSQL 15's documentation, table 28.4 and following."""


@pytest.mark.parametrize(("wait", "expected"), POSTGRES_15.items(), ids=str)
def test_names_of_version_15(wait: tuple[str, str], expected: WaitClass) -> None:
    assert classify_session("active", *wait, "S") == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (("active", None, None, "S"), "cpu"),
        (("active", "IO", "WalSync", "D"), "log_sync"),
        (("active", "IO", "WalSync", "R"), "cpu"),
        (("idle", "Client", "ClientRead", "S"), "client"),
        (("idle in transaction", "Client", "ClientRead", "S"), "client"),
        (("idle in transaction (aborted)", None, None, None), "client"),
        (("idle", "Client", "ClientRead", "R"), "cpu"),
        (("disabled", None, None, "S"), "other"),
        ((None, None, None, None), "other"),
        (("active", "Extension", "Extension", "S"), "other"),
    ],
)
def test_states_of_sessions(seen: tuple[str | None, ...], expected: WaitClass) -> None:
    assert classify_session(*seen) == expected
