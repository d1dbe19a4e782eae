"""System calls in which a thread may wait, by number on this processor."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from enum import Enum, auto


class Call(Enum):
    """Effect of a system call, for a wait profile."""

    READ = auto()
    WRITE = auto()
    SYNC = auto()
    LOCK = auto()
    """Of a file."""
    FUTEX = auto()
    SLEEP = auto()
    POLL = auto()


_X86_64: dict[Call, dict[str, int]] = {
    Call.READ: {"read": 0, "pread64": 17, "readv": 19, "preadv": 295, "preadv2": 327},
    Call.WRITE: {
        "write": 1,
        "pwrite64": 18,
        "writev": 20,
        "pwritev": 296,
        "pwritev2": 328,
        "truncate": 76,
        "ftruncate": 77,
        "fallocate": 285,
    },
    Call.SYNC: {"fsync": 74, "fdatasync": 75, "sync_file_range": 277},
    Call.LOCK: {"fcntl": 72, "flock": 73},
    Call.FUTEX: {"futex": 202},
    Call.SLEEP: {"nanosleep": 35, "clock_nanosleep": 230},
    Call.POLL: {
        "poll": 7,
        "select": 23,
        "pselect6": 270,
        "ppoll": 271,
        "epoll_wait": 232,
        "epoll_pwait": 281,
    },
}
_AARCH64: dict[Call, dict[str, int]] = {
    Call.READ: {"read": 63, "pread64": 67, "readv": 65, "preadv": 69, "preadv2": 286},
    Call.WRITE: {
        "write": 64,
        "pwrite64": 68,
        "writev": 66,
        "pwritev": 70,
        "pwritev2": 287,
        "truncate": 45,
        "ftruncate": 46,
        "fallocate": 47,
    },
    Call.SYNC: {"fsync": 82, "fdatasync": 83, "sync_file_range": 84},
    Call.LOCK: {"fcntl": 25, "flock": 32},
    Call.FUTEX: {"futex": 98},
    Call.SLEEP: {"nanosleep": 101, "clock_nanosleep": 115},
    Call.POLL: {"pselect6": 72, "ppoll": 73, "epoll_pwait": 22},
}
NUMBERS: Mapping[str, Mapping[Call, Mapping[str, int]]] = {"x86_64": _X86_64, "aarch64": _AARCH64}
"""By processor, as ``uname -m`` names it. A test compares them with the kernel's headers."""

_HERE = NUMBERS.get(platform.machine(), {})
_CALLS = {number: call for call, numbers in _HERE.items() for number in numbers.values()}


def call_of(number: int) -> Call | None:
    """Class of a call number; ``None`` if it is not listed, or the processor is unknown."""
    return _CALLS.get(number)
