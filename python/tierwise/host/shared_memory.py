"""Shared memory that outlives its processes: System V segments, and PostgreSQL's files in /dev/shm.

It is removed only if its maker is known: a process of tierwise's, or one of the servers' account that has
ended. The System V segment of a PostgreSQL server names the server's control file in /dev/shm, and that names
the others. A server that starts again removes what was left in the same way (``dsm.c``).
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tierwise.host import ledger
from tierwise.host.users import existing_server_user
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_bytes

_MEMORY = Path("/dev/shm")
_IPC_RMID = 0
_SHM_RDONLY = 0o10000
_HEADER = struct.Struct("@iiNNI")
"""PostgreSQL's PGShmemHeader: magic, pid, size, free offset, number of the control file."""
_HEADER_MAGIC = 679834894
_CONTROL_MAGIC = 0x9A503D32
_MOST_CONTROL_BYTES = 16 << 20


@dataclass(frozen=True)
class SharedMemorySegment:
    """A System V segment of ``size_bytes`` that ``user`` made."""

    id: int
    size_bytes: int
    user: int


def shared_memory_of_processes(pids: Collection[int], users: Collection[int]) -> list[SharedMemorySegment]:
    """Segments that these processes made, dead or alive, as one of these users.

    Also those of the servers' account that nobody has attached and whose maker has ended: a child of a
    process that was killed together with its owner, such as of ``initdb``.

    The user is checked because the kernel may have given a pid before, to a program of another user. A maker
    in another pid namespace has the pid 0.
    """
    account = None if (existing := existing_server_user()) is None else existing.uid
    segments = []
    with suppress(OSError):
        for line in Path("/proc/sysvipc/shm").read_text("ascii").splitlines()[1:]:
            # key shmid perms size cpid lpid nattch uid gid cuid …
            _, segment, _, size_bytes, maker, _, attached, _, _, user, *_ = map(int, line.split())
            left = not attached and user == account and ledger.ProcessIdentity.of(maker) is None
            if maker != 0 and (left or (maker in pids and user in users)):
                segments.append(SharedMemorySegment(segment, size_bytes, user))
    return segments


def remove_shared_memory(segments: Iterable[SharedMemorySegment]) -> None:
    """Remove segments, whose users have ended, with the files in /dev/shm that they name."""
    libc = ctypes.CDLL(None, use_errno=True)
    for segment in segments:
        for file in _files_of(segment):
            file.unlink(missing_ok=True)
        libc.shmctl(segment.id, _IPC_RMID, None)


def _files_of(segment: SharedMemorySegment) -> list[Path]:
    """Files in /dev/shm of the PostgreSQL server that made a segment, the control file last."""
    magic, _, _, _, number = _HEADER.unpack(_head(segment))
    control = _MEMORY / f"PostgreSQL.{number}"
    if magic != _HEADER_MAGIC or not _is_of(segment.user, control):
        return []
    try:
        content = read_bytes(control, "", most_bytes=_MOST_CONTROL_BYTES)
    except TierwiseError:
        return []
    words = array("I", content[: len(content) // 4 * 4])
    if not words or words[0] != _CONTROL_MAGIC:
        return []
    # Its table has other columns in each release; a number in it that names a file is that file's.
    numbers = set(words)
    named = [file for file in _MEMORY.glob("PostgreSQL.*") if _number(file) in numbers and file != control]
    return [*(file for file in named if _is_of(segment.user, file)), control]


def _number(file: Path) -> int | None:
    name = file.suffix[1:]
    return int(name) if name.isdecimal() else None


def _is_of(user: int, file: Path) -> bool:
    with suppress(OSError):
        return file.lstat().st_uid == user
    return False


def _head(segment: SharedMemorySegment) -> bytes:
    """First bytes of a segment; zeros if it is smaller or cannot be attached."""
    nothing = bytes(_HEADER.size)
    if segment.size_bytes < _HEADER.size:
        return nothing
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment.id, None, _SHM_RDONLY)
    if address in (None, ctypes.c_void_p(-1).value):
        return nothing
    try:
        return ctypes.string_at(address, _HEADER.size)
    finally:
        libc.shmdt(ctypes.c_void_p(address))
