"""Programs in the kernel, by the process that has them attached, and of the whole machine."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from contextlib import suppress
from pathlib import Path

_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_PROG_GET_NEXT_ID = 11


def loaded() -> set[int]:
    """Numbers of all programs that the kernel holds."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    numbers: set[int] = set()
    words = (ctypes.c_uint32 * 3)()
    while call(_BPF, _PROG_GET_NEXT_ID, ctypes.byref(words), ctypes.sizeof(words)) == 0:
        numbers.add(words[1])
        words[0] = words[1]
    return numbers


def attached(pid: int) -> int:
    """Number of programs that a process has attached."""
    count = 0
    with suppress(FileNotFoundError):
        for descriptor in Path(f"/proc/{pid}/fdinfo").iterdir():
            with suppress(FileNotFoundError):
                count += "link_type" in descriptor.read_text()
    return count


def await_attached(pid: int) -> None:
    """Wait until a process takes events."""
    deadline = time.monotonic() + 60
    while not attached(pid):
        assert time.monotonic() < deadline, "nothing was attached"
        os.kill(pid, 0)
        time.sleep(0.005)


def await_gone(programs: set[int]) -> None:
    """Wait until none of these is loaded: the kernel frees programs soon after their process has ended."""
    deadline = time.monotonic() + 10
    while left := loaded() & programs:
        assert time.monotonic() < deadline, f"still loaded: {left}"
        time.sleep(0.02)
