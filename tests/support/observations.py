"""An observation with round figures, as ``tierwise observe`` would have written it."""

from __future__ import annotations

from typing import Any

from tierwise.model.placement import Role
from tierwise.recording import Observation
from tierwise.recording.observation import ObservedWait
from tierwise.results import WaitClass

RATE = 100.0
"""Transactions a second of the observed run."""


def sessions(ms: float) -> float:
    """How many sessions are in a state in which a transaction spends so much time."""
    return RATE * ms / 1e3


def wait(event: str, wait_class: WaitClass, ms: float, role: Role | None = None) -> ObservedWait:
    return ObservedWait(event=event, wait_class=wait_class, sessions=sessions(ms), role=role)


def observation(**changes: Any) -> Observation:
    """Ten clients: a commit waits 50 ms for flushes of 36 ms, and 20 ms of each 100 ms are the client's."""
    observation: dict[str, Any] = {
        "started_at": "2026-11-23T12:00:00+00:00",
        "tierwise": "0.1.0",
        "engine": "postgres",
        "engine_version": "16.4",
        "duration_s": 60.0,
        "ticks": 1200,
        "rate_hz": 20.0,
        "waits": [
            wait("IO:WalSync", "log_sync", 8, Role.LOG),
            wait("LWLock:WALWrite", "log_lock", 42, Role.LOG),
            wait("IO:DataFileRead", "data_read", 26, Role.DATA),
            wait("Client:ClientRead", "client", 20),
            wait("active", "cpu", 4),
        ],
        "cores": 4,
        "running": sessions(4),
        "counted_s": 60.0,
        "counts": {
            "transactions": 6000,
            "log_flushes": 1330,
            "log_bytes": 6_000_000,
            "page_reads": 12_000,
            "heap_reads": 12_000,
            "index_reads": 0,
            "page_writes": 3000,
        },
        "sizes": {Role.LOG: 1 << 26, Role.DATA: 1 << 30, Role.INDEX: 1 << 28},
    }
    return Observation.model_validate(observation | changes)
