"""A recording as a trace that ui.perfetto.dev opens: threads' states, calls on files, requests to devices.

Format: 'Trace Event Format', as JSON. Each thread has two tracks, since a state may begin in one call and
end in another. Requests overlap, so they are asynchronous events on a track of their device.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tierwise.model.extras import duckdb
from tierwise.model.names import printable
from tierwise.model.units import SECTOR_BYTES
from tierwise.recording import Recording

Event = dict[str, Any]
_Track = tuple[int, int]
"""Process and track, which the format calls a thread."""
LIMIT = 200_000
"""Events of a trace, without names of tracks."""
_AT_ONCE = 10_000
_HASHED = re.compile(r"(/?[0-9a-f]{16})+")
"""A path whose parts ``redact`` replaced: it tells nothing."""
_STATES = {"cpu": "running", "runnable": "runnable", "blocked": "waiting"}
_CALLS = "c.kind::VARCHAR IN ('read', 'write', 'sync', 'resize', 'name')"
"""Calls on files; the others show in the states that wait in them. Text columns may be binary in Parquet."""
_EVENTS = f"""
SELECT start_ns AS at_ns, 1 AS events FROM states
UNION ALL SELECT c.start_ns, CASE WHEN c.asynchronous THEN 2 ELSE 1 END FROM calls c WHERE {_CALLS}
UNION ALL SELECT issued_ns, 2 FROM blocks
"""
_CUT = f"""
SELECT min(at_ns) FROM (
    SELECT at_ns, sum(events) OVER (ORDER BY at_ns RANGE UNBOUNDED PRECEDING) AS so_far FROM ({_EVENTS})
) WHERE so_far > ?
"""
_STATE_ROWS = """
SELECT s.thread, s.start_ns, s.end_ns, s.kind::VARCHAR, s.cpu, w.name::VARCHAR, c.kind::VARCHAR,
       f.role::VARCHAR, f.path::VARCHAR
FROM states s LEFT JOIN threads w ON w.thread = s.waker
LEFT JOIN calls c ON c.call = s.call LEFT JOIN files f ON f.file = c.file
WHERE s.start_ns < ? ORDER BY s.start_ns, s.thread
"""
_CALL_ROWS = f"""
SELECT c.thread, c.start_ns, c.end_ns, c.kind::VARCHAR, f.role::VARCHAR, f.path::VARCHAR, c.offset_bytes,
       c.size_bytes, c.asynchronous, c.failed, c.call
FROM calls c LEFT JOIN files f ON f.file = c.file WHERE {_CALLS} AND c.start_ns < ?
ORDER BY c.start_ns, c.thread
"""
_BLOCK_ROWS = """
SELECT b.device, b.issued_ns, b.completed_ns, b.op::VARCHAR, b.sector, b.sectors, b.fua, b.preflush,
       f.role::VARCHAR, f.path::VARCHAR
FROM blocks b LEFT JOIN files f ON f.file = b.file WHERE b.issued_ns < ? ORDER BY b.issued_ns
"""


@dataclass(frozen=True)
class PerfettoTrace:
    """A trace as JSON.

    Attributes:
        text: the file.
        events: that it has, without names of tracks.
        of_events: that the recording has.
        shown_s: time from the start of the recording to the last event.
    """

    text: str
    events: int
    of_events: int
    shown_s: float


def perfetto_trace(recording: Recording, limit: int = LIMIT) -> PerfettoTrace:
    """The first events of a recording, all threads and devices up to the same moment."""
    with recording.tables() as tables:
        total = tables.execute(f"SELECT coalesce(sum(events), 0) FROM ({_EVENTS})").fetchall()[0][0]
        cut = tables.execute(_CUT, [limit]).fetchall()[0][0]
        made = _TraceEvents(recording, tables, cut)
        events = list(made.events())
    about = recording.about
    other = {
        "tierwise": about.tierwise,
        "engine": printable(f"{about.engine} {about.engine_version or ''}".strip()),
        "started_at": printable(about.started_at),
        "events": len(events),
        "of_events": int(total),
    }
    every = [*made.names(), *events]
    lines = ",\n".join(json.dumps(name, separators=(",", ":"), allow_nan=False) for name in every)
    head = json.dumps({"displayTimeUnit": "ns", "otherData": other})
    shown_us = max((event["ts"] for event in events), default=0.0)
    text = f'{head[:-1]}, "traceEvents": [\n{lines}\n]}}\n'
    return PerfettoTrace(text, len(events), int(total), shown_us / 1e6)


class _TraceEvents:
    """The events of a recording up to a moment."""

    def __init__(self, recording: Recording, tables: duckdb.DuckDBPyConnection, cut: int | None) -> None:
        self._about, self._tables = recording.about, tables
        self._cut_ns = (1 << 63) - 1 if cut is None else cut
        self._threads: list[tuple[int, int, int, str, str]] = tables.execute(
            "SELECT thread, pid, tid, name::VARCHAR, class::VARCHAR FROM threads ORDER BY thread"
        ).fetchall()
        self._pids = {thread: pid for thread, pid, *_ in self._threads}
        self._first_device = max(self._pids.values(), default=0) + 1
        first = tables.execute(f"SELECT min(at_ns) FROM ({_EVENTS})").fetchall()[0][0]
        self._start_ns: int = min([first or 0, *(burst.start_ns for burst in self._about.bursts)])
        self._seen: set[int] = set()

    def events(self) -> Iterator[Event]:
        """States, calls and requests."""
        yield from self._states()
        yield from self._calls()
        yield from self._requests()

    def names(self) -> Iterator[Event]:
        """Names of the processes, of each thread's two tracks and of devices; after the events."""
        named: set[int] = set()
        for thread, pid, tid, name, kind in self._threads:
            if thread not in self._seen:
                continue
            if pid not in named:
                named.add(pid)
                yield _named("process_name", pid, pid, name)
            for track, what in ((_state_track(thread), "states"), (_call_track(thread), "calls")):
                yield _named("thread_name", pid, track, f"{name} {tid} ({kind}): {what}")
        for number, device in enumerate(self._about.devices):
            roles = ", ".join(device.roles)
            pid = self._first_device + number
            yield _named("process_name", pid, pid, f"device {device.name} ({roles})")

    def _states(self) -> Iterator[Event]:
        for thread, start, end, kind, cpu, waker, call, role, path in self._rows(_STATE_ROWS):
            self._seen.add(thread)
            category = f"{call} {role or ''}".strip() if call else "no call"
            blocked = kind == "blocked"
            name = f"waiting: {category}" if blocked else _STATES.get(kind, kind)
            args = _known(cpu=cpu, woken_by=waker if blocked else None, file=_file(path) if blocked else None)
            track = self._pids[thread], _state_track(thread)
            yield self._slice(track, name, _STATES.get(kind, kind), (start, end), args)

    def _calls(self) -> Iterator[Event]:
        for row in self._rows(_CALL_ROWS):
            thread, start, end, kind, role, path, offset, size, asynchronous, failed, call = row
            self._seen.add(thread)
            args = _known(file=_file(path), role=role, offset_bytes=offset, size_bytes=size)
            args |= {"failed": True} if failed else {}
            name = f"{kind} {role or ''}".strip()
            if asynchronous:
                yield from self._pair(self._pids[thread], name, "asynchronous call", call, (start, end), args)
            else:
                yield self._slice((self._pids[thread], _call_track(thread)), name, "call", (start, end), args)

    def _requests(self) -> Iterator[Event]:
        for number, row in enumerate(self._rows(_BLOCK_ROWS)):
            device, start, end, op, sector, sectors, fua, preflush, role, path = row
            args = _known(role=role, file=_file(path), sector=sector, size_bytes=sectors * SECTOR_BYTES)
            args |= {name: True for name, is_set in (("fua", fua), ("preflush", preflush)) if is_set}
            name = f"{op} {role or ''}".strip()
            yield from self._pair(self._first_device + device, name, "request", number, (start, end), args)

    def _rows(self, query: str) -> Iterator[Sequence[Any]]:
        result = self._tables.cursor().execute(query, [self._cut_ns])
        while rows := result.fetchmany(_AT_ONCE):
            yield from rows

    def _slice(self, track: _Track, name: str, category: str, span: tuple[int, int], args: Event) -> Event:
        start, end = span
        times = {"ts": self._us(start), "dur": round((end - start) / 1e3, 3)}
        named = {"ph": "X", "pid": track[0], "tid": track[1], "name": printable(name)}
        return {**named, "cat": category, **times, "args": args}

    def _pair(
        self, pid: int, name: str, category: str, number: int, span: tuple[int, int], args: Event
    ) -> Iterator[Event]:
        same = {
            "pid": pid,
            "tid": pid,
            "name": printable(name),
            "cat": category,
            "id2": {"local": hex(number)},
        }
        yield {"ph": "b", **same, "ts": self._us(span[0]), "args": args}
        yield {"ph": "e", **same, "ts": self._us(span[1])}

    def _us(self, at_ns: int) -> float:
        return round((at_ns - self._start_ns) / 1e3, 3)


def _state_track(thread: int) -> int:
    return 2 * thread + 1


def _call_track(thread: int) -> int:
    return 2 * thread + 2


def _named(kind: str, pid: int, track: int, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": track, "name": kind, "args": {"name": printable(name)}}


def _known(**args: Any) -> Event:
    return {
        name: printable(argument) if isinstance(argument, str) else argument
        for name, argument in args.items()
        if argument is not None
    }


def _file(path: str | None) -> str | None:
    return None if path is None or _HASHED.fullmatch(path) else path
