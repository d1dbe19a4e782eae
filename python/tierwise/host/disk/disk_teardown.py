"""Takes an emulated disk down, complete or half made, with its server alive or dead.

The state to undo is read from the kernel: a crash may have come between a step and its ledger update.
Every resource is matched to the disk's own directory before it is changed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from tierwise import _core
from tierwise.host import block_devices, cgroups, ledger, mounts, processes
from tierwise.host.disk.disk_server import disk_server_pids, send_command
from tierwise.model.errors import TierwiseError

_SERVER_ENDS_WITHIN_S = 30
_URING_SWITCH = Path("/sys/module/fuse/parameters/enable_uring")


def take_down_disk(entry: ledger.LedgerEntry) -> None:
    """Undo all resources of a disk's entry, then remove the entry.

    Raises:
        TierwiseError: if a process still uses the disk; the rest is undone and the entry stays.
    """
    home = disk_directory(entry.name)
    if entry.facts.get("home") != str(home):
        given = entry.facts.get("home")
        raise TierwiseError(f"{entry.path}: {given} is not the home of disk {entry.name}", f"rm {entry.path}")
    answers = _answers(home)
    if not answers:
        _kill_server(home)
    loops, own = block_devices.loop_devices_below(home), block_devices.devices_of_disk(home)
    numbers = {block_devices.device_number(device) for device in loops}
    # Those of a server that died have no number any more.
    sources = {str(device) for device in own}
    for mounted in mounts.mounts_last_first():
        if mounted.device in numbers or mounted.source in sources:
            mounts.require_topmost_mount(mounted)
            mounts.unmount(mounted.point)
    for device in loops:
        block_devices.detach_loop(device)
    for device in own:
        block_devices.require_device_unused(device)
    with contextlib.suppress(TierwiseError):
        if answers:
            send_command(control_socket(home), "detach", end=True)
    if mounts.mount_at(fuse_directory(home)):
        mounts.unmount(fuse_directory(home))
    _end_server(home)
    _core.delete_block_devices(str(home))
    _restore_switch(home)
    if server := entry.facts.get("server"):
        processes.reap_process(server["pid"])
    cgroups.remove_disk_server_cgroups(home.name)
    _remove_files(home, [Path(path) for path in entry.facts.get("made") or []])
    entry.remove()


def disk_directory(name: str) -> Path:
    """Directory of the files of one disk."""
    return ledger.run_dir() / "disks" / name


def fuse_directory(home: Path) -> Path:
    """Mount point of the server's FUSE file system, which shows the partitions."""
    return home / "fuse"


def control_socket(home: Path) -> Path:
    """Socket on which the server of a disk takes commands."""
    return home / "control"


def disk_config_file(home: Path) -> Path:
    """Configuration file of a disk's server."""
    return home / "config.json"


def _answers(home: Path) -> bool:
    """Whether the server is alive; if so, make it answer at once, so that unmounting is quick."""
    try:
        send_command(control_socket(home), "timing", on=False)
    except TierwiseError:
        return False
    return True


def _kill_server(home: Path) -> None:
    """End a server that does not answer.

    The end of the process ends its block devices or its FUSE connection, and every request in them fails.
    Writing to ``abort``, where it exists, does the same for FUSE if the server hangs in the kernel.
    """
    for pid in disk_server_pids(disk_config_file(home)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    mounted = mounts.mount_at(fuse_directory(home))
    if mounted is not None:
        with contextlib.suppress(OSError):
            Path(f"/sys/fs/fuse/connections/{mounted.device[1]}/abort").write_text("1")


def _end_server(home: Path) -> None:
    """Wait for a server with nothing left to serve; it exits by itself."""
    deadline = time.monotonic() + _SERVER_ENDS_WITHIN_S
    while disk_server_pids(disk_config_file(home)):
        if time.monotonic() > deadline:
            _kill_server(home)
            deadline = time.monotonic() + _SERVER_ENDS_WITHIN_S
        time.sleep(0.005)


def _restore_switch(home: Path) -> None:
    """Turn FUSE over io_uring off again, if a server was killed after it had turned it on for its mount.

    ``crates/disk/src/transport/fuse_uring.rs`` leaves a note for that moment.
    """
    note = home / "enable_uring_was_off"
    if note.exists():
        _URING_SWITCH.write_text("N")
        note.unlink()


def _remove_files(home: Path, made: list[Path]) -> None:
    for directory in reversed(made):
        with contextlib.suppress(OSError):
            directory.rmdir()
    shutil.rmtree(home, ignore_errors=True)
    with contextlib.suppress(OSError):
        home.parent.rmdir()
