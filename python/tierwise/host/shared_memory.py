"""System V shared memory, which survives when its processes are killed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Collection, Iterable
from pathlib import Path

_IPC_RMID = 0


def segments_made_by(pids: Collection[int], users: Collection[int]) -> list[int]:
    """Ids of the segments that these processes made, dead or alive, as one of these users.

    The user is checked because the kernel may have given a pid before, to a program of another user. A maker
    in another pid namespace has the pid 0.
    """
    found = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]:
            # key shmid perms size cpid lpid nattch uid gid cuid …
            _, segment, _, _, maker, _, _, _, _, user, *_ = map(int, line.split())
            if maker != 0 and maker in pids and user in users:
                found.append(segment)
    return found


def remove(segments: Iterable[int]) -> None:
    """Remove segments; the kernel keeps one until its last user has ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    for segment in segments:
        libc.shmctl(segment, _IPC_RMID, None)
