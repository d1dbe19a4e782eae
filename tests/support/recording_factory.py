"""Small recordings, written row by row as any other program could."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import duckdb

COLUMNS = {
    "threads": "thread BIGINT, pid BIGINT, tid BIGINT, name VARCHAR, class VARCHAR",
    "files": "file BIGINT, path VARCHAR, role VARCHAR, device BIGINT, size_bytes BIGINT",
    "states": "thread BIGINT, start_ns BIGINT, end_ns BIGINT, kind VARCHAR, cpu BIGINT, waker BIGINT, "
    "call BIGINT",
    "calls": "call BIGINT, thread BIGINT, start_ns BIGINT, end_ns BIGINT, kind VARCHAR, file BIGINT, "
    "offset_bytes BIGINT, size_bytes BIGINT, asynchronous BOOLEAN, failed BOOLEAN",
    "blocks": "device BIGINT, sector BIGINT, sectors BIGINT, op VARCHAR, fua BOOLEAN, preflush BOOLEAN, "
    "sync BOOLEAN, meta BOOLEAN, issued_ns BIGINT, completed_ns BIGINT, thread BIGINT, file BIGINT",
}

Rows = list[tuple[Any, ...]]

ONE_COMMIT: dict[str, Rows] = {
    "threads": [(0, 10, 10, "postgres", "session"), (1, 20, 20, "client", "client")],
    "files": [(0, "/d/pg_wal/0001", "log", 0, 16 << 20), (1, "socket:[7]", None, None, 0)],
    "states": [
        (0, 0, 1_000_000, "cpu", 0, None, None),
        (0, 1_000_000, 9_000_000, "blocked", 0, None, 1),
        (0, 9_000_000, 10_000_000, "cpu", 0, None, None),
        (1, 0, 9_500_000, "blocked", 1, 0, None),
        (1, 9_500_000, 10_000_000, "runnable", 1, None, None),
    ],
    "calls": [
        (0, 0, 500_000, 600_000, "write", 0, 8192, 8192, False, False),
        (1, 0, 1_000_000, 9_000_000, "sync", 0, None, 0, False, False),
        (2, 0, 9_400_000, 9_500_000, "send", 1, None, 64, False, False),
    ],
    "blocks": [
        (0, 2048, 16, "write", False, False, True, False, 1_100_000, 5_000_000, 0, 0),
        (0, None, 0, "flush", False, False, True, False, 5_000_000, 8_900_000, 0, None),
    ],
}
"""Ten milliseconds: a commit that waits for the log, and the client that waits for the commit."""


def about(**changes: Any) -> dict[str, Any]:
    """What a recording of ``ONE_COMMIT`` says of itself, with changes."""
    device = {
        "name": "sdb1",
        "major": 8,
        "minor": 17,
        "mount": "/d",
        "roles": ["log"],
        "shared": 0,
        "first_sector": 2048,
        "sectors": 1 << 22,
        "profile": None,
        "write_cache": True,
    }
    machine = {"cores": 2, "memory_bytes": 8 << 30, "processor": "any", "kernel": "6.1.0"}
    return {
        "format": "tierwise recording",
        "version": 1,
        "started_at": "2026-11-21T12:00:00Z",
        "tierwise": "0.1.0",
        "engine": "postgres",
        "engine_version": "18.6",
        "settings": {"shared_buffers": "128MB"},
        "machine": machine,
        "duration_s": 0.01,
        "bursts": [{"start_ns": 0, "end_ns": 10_000_000}],
        "devices": [device],
        "losses": {"recorded_events": 13, "lost_events": 0},
        "cost": None,
        "transactions": 1,
        "foreign_cpu_share": 0.0,
        "checks": [],
        "warnings": [],
    } | changes


def write_recording(directory: Path, rows: dict[str, Rows] = ONE_COMMIT, **changes: Any) -> Path:
    """Write a recording of these rows; ``changes`` go to ``about.json``."""
    directory.mkdir(parents=True)
    tables = {name: _write_table(directory, name, rows.get(name, [])) for name in COLUMNS}
    (directory / "about.json").write_text(json.dumps(about(**changes) | {"tables": tables}), "utf-8")
    return directory


def _write_table(directory: Path, name: str, rows: Rows) -> dict[str, int]:
    file = directory / f"{name}.parquet"
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({COLUMNS[name]})")
    if rows:
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    connection.table("t").write_parquet(str(file), compression="zstd")
    content = file.read_bytes()
    return {"rows": len(rows), "size_bytes": len(content), "crc32": zlib.crc32(content)}
