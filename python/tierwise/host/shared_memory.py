"""Shared memory that outlives the processes that made it, when these are killed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_POSIX = "/dev/shm/"
_IPC_RMID = 0


@dataclass(frozen=True)
class Held:
    """What a group of processes holds: files under /dev/shm, and ids of System V segments."""

    files: frozenset[Path]
    segments: frozenset[int]


def held_by(pids: Iterable[int]) -> Held:
    """The shared memory that live processes map (POSIX) or made (System V)."""
    members = set(pids)
    mapped = {path for pid in members for path in _mapped_files(pid)}
    return Held(frozenset(mapped), frozenset(_segments_made_by(members)))


def release(held: Held) -> None:
    """Remove it; its users must have ended."""
    for path in held.files:
        path.unlink(missing_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    for segment in held.segments:
        libc.shmctl(segment, _IPC_RMID, None)


def _mapped_files(pid: int) -> Iterable[Path]:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines():
            name = line[line.find("/") :] if "/" in line else ""
            if name.startswith(_POSIX) and not name.endswith(" (deleted)"):
                yield Path(name)


def _segments_made_by(pids: set[int]) -> Iterable[int]:
    """Columns shmid and cpid of /proc/sysvipc/shm."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if int(fields[4]) in pids:
                yield int(fields[1])
