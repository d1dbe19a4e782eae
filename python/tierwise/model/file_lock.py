"""A lock between processes of one user: private, waited for only so long, and its holder is named.

The ledger has one, and so has each folder that a run adds rows to, and that of a recording in progress.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tierwise.model.errors import TierwiseError, os_errors
from tierwise.model.output_files import open_output_file

WAITS_S = 120.0
"""The longest of what is done under the lock, taking down a disk whose server hangs, takes about a minute."""
_TRIES_EACH_S = 0.02
_PRIVATE = 0o600


@contextmanager
def held(file: Path, *, busy: TierwiseError | None = None) -> Iterator[None]:
    """Hold the lock of a file in a folder of the caller's; the file is made if it is missing.

    If another process holds it, ``busy`` is raised at once. Without ``busy``, :data:`WAITS_S` are waited, and
    the error names the process.
    """
    deadline = time.monotonic() + WAITS_S
    try:
        lock = open_output_file(file, "append")
    except OSError as error:
        raise TierwiseError(
            f"{error.filename or file}: {error.strerror}", "name a directory that you may write"
        ) from error
    with lock as opened:
        descriptor = opened.fileno()
        os.fchmod(descriptor, _PRIVATE)  # Former versions let others open it, who could hold the lock.
        while not _taken(descriptor):
            if busy is not None:
                raise busy
            if time.monotonic() > deadline:
                holder = _holder(os.fstat(descriptor))
                raise TierwiseError(f"{file} has been locked for {WAITS_S:.0f} s by {holder}", "end it")
            time.sleep(_TRIES_EACH_S)
        yield


@contextmanager
def claim_folder_lock(folder: Path, busy: TierwiseError) -> Iterator[None]:
    """Hold the lock of a folder; if another process holds it, ``busy`` is raised at once."""
    with os_errors(folder, "name a directory that you may write"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not _taken(descriptor):
            raise busy
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(status: os.stat_result) -> str:
    """Pid and command of the process that holds a lock of a file, as the kernel's list has it."""
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in Path("/proc/locks").read_text("ascii").splitlines():
        fields = line.split()
        # "1: FLOCK ADVISORY WRITE 1234 08:02:5678 0 EOF"; one that waits has "->" after the number.
        if fields[1] == "FLOCK" and fields[5] == wanted:
            pid = fields[4]
            return f"process {pid} ({_command(pid)})"
    return "a process that /proc/locks does not show"


def _command(pid: str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return "which has ended: another one has its open file"
    shown = " ".join(words).strip()[:200]
    return "".join(letter if letter.isprintable() else "?" for letter in shown)
