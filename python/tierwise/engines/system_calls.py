"""System calls in which a thread may wait, by their numbers on this processor."""

from __future__ import annotations

import platform
from enum import Enum, auto


class Call(Enum):
    """What a call does, as far as a wait profile cares."""

    READ = auto()
    WRITE = auto()
    SYNC = auto()
    LOCK = auto()
    """Of a file."""
    FUTEX = auto()
    SLEEP = auto()
    POLL = auto()


_X86_64 = {
    Call.READ: (0, 17, 19, 295, 327),  # read pread64 readv preadv preadv2
    Call.WRITE: (1, 18, 20, 296, 328, 76, 77, 285),  # write ... pwritev2, truncate ftruncate fallocate
    Call.SYNC: (74, 75, 277),  # fsync fdatasync sync_file_range
    Call.LOCK: (72, 73),  # fcntl flock
    Call.FUTEX: (202,),
    Call.SLEEP: (35, 230),  # nanosleep clock_nanosleep
    Call.POLL: (7, 23, 232, 270, 271, 281),  # poll select epoll_wait pselect6 ppoll epoll_pwait
}
_AARCH64 = {
    Call.READ: (63, 65, 67, 69, 286),
    Call.WRITE: (64, 66, 68, 70, 287, 45, 46, 47),
    Call.SYNC: (82, 83, 84),
    Call.LOCK: (25, 32),
    Call.FUTEX: (98,),
    Call.SLEEP: (101, 115),
    Call.POLL: (22, 72, 73),
}
_TABLES = {"x86_64": _X86_64, "aarch64": _AARCH64}
"""From arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux."""

_CALLS = {number: call for call, numbers in _TABLES.get(platform.machine(), {}).items() for number in numbers}


def call_of(number: int) -> Call | None:
    """What the call of that number does; ``None`` if it is none of these, or the processor is unknown."""
    return _CALLS.get(number)
