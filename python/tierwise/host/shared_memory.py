"""System V shared memory, which survives when its processes are killed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Collection, Iterable
from pathlib import Path

_IPC_RMID = 0


def segments_made_by(pids: Collection[int]) -> list[int]:
    """Ids of the segments that these processes made, dead or alive: columns of /proc/sysvipc/shm."""
    found = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]:
            _, segment, _, _, maker, *_ = map(int, line.split())
            if maker in pids:
                found.append(segment)
    return found


def remove(segments: Iterable[int]) -> None:
    """Remove segments; the kernel keeps one until its last user has ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    for segment in segments:
        libc.shmctl(segment, _IPC_RMID, None)
