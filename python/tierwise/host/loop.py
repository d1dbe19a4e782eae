"""Loop devices: block devices backed by a file of the disk server."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from tierwise.host.mounts import in_use_by, run, users_of_device
from tierwise.model.errors import HostError, TierwiseError

MAJOR = 7
_LOOP_CLR_FD = 0x4C01
_GONE_AFTER_S = 30

LARGEST_REQUEST_KIB = 1024
"""The limit of a FUSE request: a larger request would reach the model in parts."""
REQUESTS_AT_ONCE = 128


def attach(file: Path) -> Path:
    """Attach a loop device to ``file`` with direct I/O (no page cache between them); give its path."""
    device = Path(run("losetup", "--find", "--show", "--direct-io=on", str(file)).strip())
    if _attribute(device, "loop/dio").read_text().strip() != "1":
        detach(device)
        raise HostError(f"{device}: no direct I/O on {file}", "use Linux 5.10 or later")
    return device


def configure(device: Path, rotational: bool) -> None:
    """Set every queue attribute: a loop device inherits them from its last user.

    A stale write-through setting would silently drop every flush.
    """
    settings = {
        "scheduler": "none",
        "write_cache": "write back",
        "max_sectors_kb": str(LARGEST_REQUEST_KIB),
        "nr_requests": str(REQUESTS_AT_ONCE),
        "rotational": str(int(rotational)),
        "read_ahead_kb": "128",
        "nomerges": "0",
        "rq_affinity": "1",
    }
    for name, value in settings.items():
        try:
            _attribute(device, f"queue/{name}").write_text(value)
        except OSError as error:
            raise TierwiseError(
                f"{device}: queue/{name} = {value}: {error.strerror}", "use Linux 5.10 or later"
            ) from error


def attached_below(directory: Path) -> dict[Path, Path]:
    """Loop devices whose backing files lie below a directory, each with its file."""
    found = {}
    for block in Path("/sys/block").glob("loop*"):
        with contextlib.suppress(OSError):
            file = Path((block / "loop/backing_file").read_text().strip())
            if file.is_relative_to(directory):
                found[Path("/dev") / block.name] = file
    return found


def detach(device: Path) -> None:
    """Detach a loop device from its file and wait until it is free.

    Raises:
        TierwiseError: if a process still uses it.
    """
    let_go(device)
    deadline = time.monotonic() + _GONE_AFTER_S
    while _attribute(device, "loop/backing_file").exists():
        if time.monotonic() > deadline:
            users = in_use_by(users_of_device(number(device))) or "is in use"
            raise TierwiseError(f"{device} {users}", "end what uses it, then try again")
        time.sleep(0.005)


def let_go(device: Path) -> None:
    """Detach a loop device from its file, now or when its last user closes it."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.ioctl(descriptor, _LOOP_CLR_FD)
    finally:
        os.close(descriptor)


def number(device: Path) -> tuple[int, int]:
    """Major and minor number, as in the mount table."""
    major, minor = _attribute(device, "dev").read_text().split(":")
    return int(major), int(minor)


def _attribute(device: Path, name: str) -> Path:
    return Path("/sys/block") / device.name / name
