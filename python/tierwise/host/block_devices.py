"""Block devices of emulated disks: the server's own (ublk), or loop devices on its files (FUSE)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tierwise import _core
from tierwise.host.mounts import device_in_use_text
from tierwise.model.errors import HostError, TierwiseError, os_errors

_BLOCKS = Path("/sys/block")
_CONTROL = Path("/dev/loop-control")
# From linux/loop.h. A struct loop_config: file, block size, and a struct loop_info64 with only its flags.
_LOOP_CLR_FD = 0x4C01
_LOOP_CONFIGURE = 0x4C0A
_LOOP_CTL_GET_FREE = 0x4C82
_LO_FLAGS_DIRECT_IO = 16
_BLKFLSBUF = 0x1261  # from linux/fs.h
_LOOP_CONFIG = "=II52xI176x64x"
_GONE_AFTER_S = 30
_BLOCK_BYTES = 4096
_WRITE_BACK = "write back"

LARGEST_REQUEST_KIB = 1024
"""The limit of a server's request: a larger request would reach the model in parts."""
REQUESTS_AT_ONCE = 128


def attach_loop(file: Path) -> Path:
    """Attach a loop device to ``file`` with direct I/O (no page cache between them); give its path.

    One ioctl does it: losetup(8) would be a process that ends its work after a caller that was killed.

    Raises:
        HostError: with the kernel's reason, if it cannot be attached.
    """
    try:
        with _opened(file, os.O_RDWR) as backing, _opened(_CONTROL, os.O_RDWR) as control:
            while not _try_attach(device := _free_device(control), backing):
                continue
    except OSError as error:
        name = error.filename or file
        raise HostError(f"no loop device: {name}: {error.strerror}", "use Linux 5.10 or later") from error
    if _attribute(device, "loop/dio").read_text().strip() != "1":
        detach_loop(device)
        raise HostError(f"{device}: no direct I/O on {file}", "use Linux 5.10 or later")
    return device


def _free_device(control: int) -> Path:
    return Path(f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}")


def _try_attach(device: Path, backing: int) -> bool:
    """Attach a free device to an open file; ``False`` if another process was first."""
    settings = struct.pack(_LOOP_CONFIG, backing, 0, _LO_FLAGS_DIRECT_IO)
    with _opened(device, os.O_RDWR) as descriptor:
        try:
            fcntl.ioctl(descriptor, _LOOP_CONFIGURE, settings)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
            raise
    return True


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class ReportedCaches:
    """What the kernel is told of an emulated disk."""

    rotational: bool
    write_cache: bool
    """Whether the disk has a volatile write cache; the kernel sends flushes to no other."""


def set_queue_attributes(device: Path, disk: ReportedCaches) -> None:
    """Set every queue attribute: a loop device inherits them from its last user, others have defaults."""
    settings = {
        "scheduler": "none",
        "write_cache": _WRITE_BACK if disk.write_cache else "write through",
        "max_sectors_kb": str(LARGEST_REQUEST_KIB),
        "nr_requests": str(REQUESTS_AT_ONCE),
        "rotational": str(int(disk.rotational)),
        "read_ahead_kb": "128",
        "nomerges": "0",
        "rq_affinity": "1",
    }
    for name, value in settings.items():
        with os_errors(f"{device}: queue/{name} = {value}", "use Linux 5.10 or later"):
            _attribute(device, f"queue/{name}").write_text(value)


def loop_devices_below(directory: Path) -> list[Path]:
    """Loop devices whose backing files lie below a directory."""
    devices = []
    for block in _BLOCKS.glob("loop*"):
        with contextlib.suppress(OSError):
            backing = os.fsdecode((block / "loop/backing_file").read_bytes()).removesuffix("\n")
            if Path(backing).is_relative_to(directory):
                devices.append(Path("/dev") / block.name)
    return devices


def devices_of_disk(home: Path) -> list[Path]:
    """Block devices of the server of the disk whose files are in ``home``, also of one that has died."""
    return [Path(device) for device in _core.block_devices(str(home))]


def require_device_unused(device: Path) -> None:
    """Refuse a device, if it is still there, that a process has open.

    Raises:
        TierwiseError: naming the users.
    """
    if _attribute(device, "dev").exists() and (users := device_in_use_text(device_number(device))):
        raise TierwiseError(f"{device} {users}", "end what uses it, then try again")


def detach_loop(device: Path) -> None:
    """Detach a loop device from its file and wait until it is free."""
    detach_loop_lazily(device)
    deadline = time.monotonic() + _GONE_AFTER_S
    while _attribute(device, "loop/backing_file").exists():
        if time.monotonic() > deadline:
            users = device_in_use_text(device_number(device)) or "is in use"
            raise TierwiseError(f"{device} {users}", "end what uses it, then try again")
        time.sleep(0.005)


def detach_loop_lazily(device: Path) -> None:
    """Detach a loop device from its file, now or when its last user closes it.

    First the kernel gets its own setting back: a next user who inherits write-through would lose every flush.
    """
    with contextlib.suppress(OSError):
        _attribute(device, "queue/write_cache").write_text(_WRITE_BACK)
    with _opened(device, os.O_RDONLY) as descriptor, contextlib.suppress(OSError):
        fcntl.ioctl(descriptor, _LOOP_CLR_FD)


def drop_buffers(device: Path, *, unused: bool = False) -> None:
    """Write out and drop the kernel's buffers of a device, such as the metadata of its file system.

    Args:
        unused: also verify that no file system of the device is mounted anywhere, so that nothing of one
            stays in memory.
    """
    try:
        with _opened(device, os.O_RDONLY | (os.O_EXCL if unused else 0)) as descriptor:
            fcntl.ioctl(descriptor, _BLKFLSBUF, 0)
    except OSError as error:
        users = device_in_use_text(device_number(device)) or "is in use"
        problem = users if error.errno == errno.EBUSY else error.strerror
        raise TierwiseError(f"{device} {problem}", "end what uses it, then try again") from None


def is_readable(device: Path) -> bool:
    """Whether the first block of a device can be read, where file systems have their description."""
    try:
        with _opened(device, os.O_RDONLY) as descriptor:
            return len(os.read(descriptor, _BLOCK_BYTES)) == _BLOCK_BYTES
    except OSError:
        return False


def device_number(device: Path) -> tuple[int, int]:
    """Major and minor number, as in the mount table."""
    major, minor = _attribute(device, "dev").read_text().split(":")
    return int(major), int(minor)


def _attribute(device: Path, name: str) -> Path:
    return _BLOCKS / device.name / name
