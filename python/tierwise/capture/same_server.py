"""Whether a session over SQL is one of the recorded server."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from tierwise import _core
from tierwise.capture.rules import first_process_of
from tierwise.capture.server_session import ServerSession
from tierwise.capture.target import Target, server_at
from tierwise.model.errors import TierwiseError

_CONTROL_FILE = "global/pg_control"
NOT_VERIFIED = (
    "whether the DSN is of the recorded server could not be verified: neither the connection nor the server "
    "tells its process"
)


def require_same(session: ServerSession, target: Target) -> str | None:
    """Compare an open session with the recorded server; a sentence if nothing tells whether it is the same.

    The process at the other end of the connection decides. Behind a pooler, a proxy or another network, the
    process that the server names decides, by the number that it has in the server's own process namespace.

    Raises:
        TierwiseError: if it is another server, naming both.
    """
    recorded = target.processes()
    if set(session.peers) & set(recorded):
        return None
    for peer in session.peers:
        other = first_process_of(peer)
        if other is not None and other not in recorded:
            raise _another(session, target, other)
    if _differs(session.system, _system_of(target)):
        raise _another(session, target)
    if session.task is None:
        return NOT_VERIFIED
    if session.task not in _numbers_inside(recorded):
        raise _another(session, target)
    return None


def _differs(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _another(session: ServerSession, target: Target, other: int | None = None) -> TierwiseError:
    pids = target.processes()
    first = pids[0] if target.pid is None and pids else target.pid
    ours = "gone" if first is None else server_at(first, target.rules)["described"]
    fix = "give the DSN of the recorded server"
    if other is not None:
        return TierwiseError(
            f"--dsn: its server is another one, {_core.servers_listed([other])}; the recorded one is {ours}",
            f"{fix}, or --pid {other}",
        )
    place = (
        f"data directory {session.data_directory}" if session.data_directory else "which names no directory"
    )
    return TierwiseError(f"--dsn: its server is another one, {place}; the recorded one is {ours}", fix)


def _numbers_inside(pids: Iterable[int]) -> set[int]:
    """Numbers of the threads of processes as they see them themselves."""
    statuses = (status for pid in pids for status in Path(f"/proc/{pid}/task").glob("*/status"))
    return {number for status in statuses if (number := _number_inside(status)) is not None}


def _number_inside(status: Path) -> int | None:
    try:
        lines = status.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    numbers = next((line.split() for line in lines if line.startswith("NSpid:")), [])
    return int(numbers[-1]) if len(numbers) > 1 else None


def _system_of(target: Target) -> str | None:
    """System identifier of the recorded PostgreSQL, the first 8 bytes of its control file."""
    pids = target.processes()
    if not pids or target.rules.counters != "postgresql":
        return None
    try:
        directory = Path(f"/proc/{pids[0]}/cwd").readlink()
        with _core.path_within(target.root, directory / _CONTROL_FILE).open("rb") as control:
            return str(struct.unpack("=Q", control.read(8))[0])
    except (OSError, struct.error):
        return None
