"""Takes an emulated disk down, whole or half made, its server alive or dead.

What there is to undo is read from the kernel, not from memory: a crash may have come between a step and
its note. Everything is matched to the disk's own directory before it is touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from tierwise.host import cgroups, ledger, loop, mounts, processes
from tierwise.host.disk import control as disk_control
from tierwise.host.disk import server as disk_server
from tierwise.model.errors import TierwiseError

_SERVER_ENDS_WITHIN_S = 30


def take_down(entry: ledger.Entry) -> None:
    """Undo everything that a disk's entry stands for, then the entry.

    Raises:
        TierwiseError: if something still uses the disk; what could be undone is, and the entry stays.
    """
    home = Path(entry.facts["home"])
    if home != home_of(entry.name):
        raise TierwiseError(f"{home} is not the home of disk {entry.name}", f"rm {entry.path}")
    if not _answers(home):
        _kill_server(home)
    loops = loop.attached_below(home)
    numbers = {loop.number(device) for device in loops}
    for mounted in reversed(mounts.mounts()):
        if mounted.device in numbers:
            mounts.unmount(mounted.point)
    for device in loops:
        loop.detach(device)
    if mounts.mount_at(fuse_directory(home)):
        mounts.unmount(fuse_directory(home))
    _end_server(home)
    if server := entry.facts.get("server"):
        processes.reap(server["pid"])
    cgroups.remove_server_groups(home.name)
    _remove_files(home, [Path(path) for path in entry.facts["made"]])
    entry.remove()


def home_of(name: str) -> Path:
    """Directory of the files of one disk."""
    return ledger.run_dir() / "disks" / name


def fuse_directory(home: Path) -> Path:
    """Where the server of a disk shows its partitions."""
    return home / "fuse"


def control_socket(home: Path) -> Path:
    """Where the server of a disk takes commands."""
    return home / "control"


def config_file(home: Path) -> Path:
    """What the server of a disk was told."""
    return home / "config.json"


def _answers(home: Path) -> bool:
    """Whether the server is alive; if so it answers at once from now on, so that unmounting is quick."""
    try:
        disk_control.ask(control_socket(home), "timing", on=False)
    except TierwiseError:
        return False
    return True


def _kill_server(home: Path) -> None:
    """End a server that does not answer.

    Its end aborts the FUSE connection, and every request inside fails; so does writing to ``abort``, where
    that is there, should the server hang in the kernel.
    """
    for pid in disk_server.find(config_file(home)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    mounted = mounts.mount_at(fuse_directory(home))
    if mounted is not None:
        with contextlib.suppress(OSError):
            Path(f"/sys/fs/fuse/connections/{mounted.device[1]}/abort").write_text("1")


def _end_server(home: Path) -> None:
    """Wait for a server that has nothing left to serve; it ends by itself."""
    deadline = time.monotonic() + _SERVER_ENDS_WITHIN_S
    while disk_server.find(config_file(home)):
        if time.monotonic() > deadline:
            _kill_server(home)
            deadline = time.monotonic() + _SERVER_ENDS_WITHIN_S
        time.sleep(0.005)


def _remove_files(home: Path, made: list[Path]) -> None:
    for directory in reversed(made):
        with contextlib.suppress(OSError):
            directory.rmdir()
    shutil.rmtree(home, ignore_errors=True)
    with contextlib.suppress(OSError):
        home.parent.rmdir()
