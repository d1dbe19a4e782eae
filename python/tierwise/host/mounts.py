"""Mounts: reads the mount table, makes file systems, mounts and unmounts."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tierwise.host.python_process import part_others_may_write
from tierwise.model.errors import HostError, TierwiseError

_MAKE_OPTIONS: dict[str, list[str]] = {
    # Initialise everything now: lazy initialisation would run in the measured phase.
    "ext4": ["-q", "-F", "-m", "0", "-i", "32768", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
    "xfs": ["-q", "-f", "-K"],
}
_MOUNT_OPTIONS = {
    # Without it, ext4 reads all block bitmaps at a random moment up to 5 s later, in the measured phase.
    "ext4": "no_prefetch_block_bitmaps",
    # After a power cut the old mount may still have users; XFS refuses a second mount with the same UUID.
    "xfs": "nouuid",
}
_UNKNOWN_BEFORE_5_13 = "no_prefetch_block_bitmaps"
_SMALLEST_MIB = {"ext4": 16, "xfs": 300}
_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
_SYSTEM = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_MS_NOATIME = 1024
_MS_REC = 16384
_MS_PRIVATE = 1 << 18
_CLONE_NEWNS = 0x00020000
_MNT_DETACH = 2
_UMOUNT_NOFOLLOW = 8
_PATIENCE_S = 2


@dataclass(frozen=True)
class Mount:
    """One line of the kernel's mount table."""

    point: Path
    device: tuple[int, int]
    """Major and minor number. The minor number of a FUSE mount is that of its connection."""
    file_system: str
    source: str
    id: int
    """The kernel's ID of the mount."""


def mounts(pid: int | None = None) -> list[Mount]:
    """All mounts that a process sees (this process when left out), in mount order."""
    table = Path(f"/proc/{pid or 'self'}/mountinfo").read_bytes().decode("utf-8", "surrogateescape")
    # Of all that Python takes for the end of a line, the kernel escapes the line feed alone.
    return [_parse(line.split(" ")) for line in table.split("\n") if line]


def mount_at(point: Path) -> Mount | None:
    """The mount at a path (the last, if several), or ``None``."""
    return next((mount for mount in reversed(mounts()) if mount.point == point), None)


def mounts_last_first() -> list[Mount]:
    """All mounts that this process sees, the last first: the order in which they can be unmounted."""
    return mounts()[::-1]


def require_topmost_mount(mount: Mount) -> None:
    """Refuse a mount over which something else is mounted: unmounting would take that instead."""
    top = mount_at(mount.point)
    if top is not None and top.id != mount.id:
        raise TierwiseError(
            f"{mount.point}: {top.source} ({top.file_system}) is mounted over {mount.source}",
            f"umount {mount.point}, then try again",
        )


def _parse(fields: list[str]) -> Mount:
    major, minor = fields[2].split(":")
    file_system, source = map(_unescape, fields[fields.index("-") + 1 :][:2])
    return Mount(Path(_unescape(fields[4])), (int(major), int(minor)), file_system, source, int(fields[0]))


def _unescape(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)


def require_file_system_tools(file_system: str, size_bytes: int, where: str) -> None:
    """Refuse a file system that cannot be made on this machine, or not in this size.

    Raises:
        TierwiseError: naming ``where``, the file system, and the package or the smallest size.
    """
    if file_system not in _MAKE_OPTIONS:
        raise TierwiseError(f"{where}: unknown file system {file_system!r}", "use ext4 or xfs")
    if shutil.which(f"mkfs.{file_system}", path=tool_search_path()) is None:
        package = _PACKAGES[file_system]
        raise HostError(f"{where}: mkfs.{file_system} is not installed", f"apt-get install {package}")
    if size_bytes < _SMALLEST_MIB[file_system] << 20:
        raise TierwiseError(
            f"{where}: {size_bytes} bytes are too few for {file_system}",
            f"give it at least {_SMALLEST_MIB[file_system]}M",
        )


def make_file_system(file_system: str, device: Path) -> None:
    """Make a fully initialised file system."""
    run_system_command(f"mkfs.{file_system}", *_MAKE_OPTIONS[file_system], str(device))


def mount(source: Path | str, point: Path, file_system: str) -> None:
    """Mount a file system, of a block device or the kernel's own, without access time updates.

    It calls mount(2) itself: mount(8) would be a process that ends its work after a caller that was killed.

    Raises:
        HostError: with the kernel's reason, if it cannot be mounted.
    """
    options = _MOUNT_OPTIONS.get(file_system, "")
    error = _mount(source, point, file_system, options)
    if error == errno.EINVAL and options == _UNKNOWN_BEFORE_5_13:
        error = _mount(source, point, file_system, "")
    if error:
        what = file_system if str(source) == "none" else source
        raise HostError(f"cannot mount {what} at {point}: {os.strerror(error)}", _mount_fix(error, point))


def _mount_fix(error: int, point: Path) -> str:
    if not point.is_dir():
        return f"mkdir -p {point}, then try again"
    if error in (errno.EPERM, errno.EACCES):
        return "run as root with the right to mount (CAP_SYS_ADMIN); in a container: --privileged"
    return "see the kernel's log with dmesg"


def mount_obstacle() -> str | None:
    """Why this process may not mount a file system; ``None`` if it may.

    A child tries it, in a mount namespace of its own, which ends with the child.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(_mount_error()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        error = int(pipe.read() or errno.EIO)
    os.waitpid(child, 0)
    return os.strerror(error) if error else None


def _mount_error() -> int:
    """Error number of mounting a file system in a mount namespace of its own; 0 if it worked."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        return ctypes.get_errno()
    for point, file_system, flags in ((b"/", None, _MS_REC | _MS_PRIVATE), (b"/proc", b"tmpfs", 0)):
        if libc.mount(b"none", point, file_system, ctypes.c_ulong(flags), None):
            return ctypes.get_errno()
    return 0


def _mount(source: Path | str, point: Path, file_system: str, options: str) -> int:
    """Call mount(2); gives the error, 0 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = file_system.encode(), ctypes.c_ulong(_MS_NOATIME), options.encode()
    return ctypes.get_errno() if libc.mount(os.fsencode(source), os.fsencode(point), *arguments) else 0


def unmount(point: Path, *, lazily: bool = False) -> None:
    """Unmount the last mount at ``point``; wait up to :data:`_PATIENCE_S` for its users to end.

    With ``lazily``, detach it from the tree at once: it is unmounted when its last user ends.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while error := _umount2(point, _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazily else 0)):
        if error == errno.EBUSY and time.monotonic() < deadline:
            time.sleep(0.02)
            continue
        detail = (
            in_use_text(processes_using_path(point)) or "busy" if error == errno.EBUSY else os.strerror(error)
        )
        raise TierwiseError(f"cannot unmount {point}: {detail}", "end what uses it, then try again")


def _umount2(point: Path, flags: int) -> int:
    """Call umount2(2) directly: umount(8) may look at the file system and hang if its server is dead."""
    libc = ctypes.CDLL(None, use_errno=True)
    status = libc.umount2(os.fsencode(point), flags)
    return 0 if status == 0 else ctypes.get_errno()


def in_use_text(users: dict[int, str]) -> str:
    """Processes as text; empty if there are none."""
    return "in use by " + ", ".join(f"{pid} ({name})" for pid, name in users.items()) if users else ""


def processes_using_path(point: Path) -> dict[int, str]:
    """Pid and name of each process with an open file or working directory below a path."""
    return _users(
        lambda process: any(_is_below(link, point) for link in [process / "root", *_links(process)])
    )


def device_in_use_text(device: tuple[int, int]) -> str:
    """Mounts and processes that keep a device's file system, as text; empty if there are none."""
    if points := [str(mount.point) for mount in mounts() if mount.device == device]:
        return f"is mounted at {', '.join(points)}"
    return in_use_text(_users_of_device(device))


def _users_of_device(device: tuple[int, int]) -> dict[int, str]:
    """Pid and name of each process that keeps a device's file system: by an open file or its own mount.

    A process with a mount namespace of its own has copies of the mounts of the time when it was made. They
    stay when this process unmounts.
    """
    return _users(
        lambda process: (
            any(mount.device == device for mount in mounts(int(process.name)))
            or any(_is_on(link, device) for link in _links(process))
        )
    )


def _users(uses: Callable[[Path], bool]) -> dict[int, str]:
    """Pid and name of each process of whose folder in /proc ``uses`` is true, as far as it may be read."""
    pids = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if uses(process):
                pids[int(process.name)] = (process / "comm").read_text("utf-8", "replace").strip()
    return pids


def _links(process: Path) -> list[Path]:
    return [process / "cwd", *(process / "fd").iterdir()]


def _is_on(link: Path, device: tuple[int, int]) -> bool:
    try:
        return link.stat().st_dev == os.makedev(*device)
    except OSError:
        return False


def _is_below(link: Path, point: Path) -> bool:
    try:
        return link.readlink().is_relative_to(point)
    except OSError:
        return False


def tool_search_path() -> str:
    """Where tools are looked for: in the system's directories, then in those of the caller's path.

    Root looks in no directory to which others may write.
    """
    own = [part for part in os.environ.get("PATH", "").split(os.pathsep) if part.startswith("/")]
    return os.pathsep.join([*_SYSTEM, *(part for part in own if os.geteuid() != 0 or _is_closed(part))])


def _is_closed(directory: str) -> bool:
    try:
        return part_others_may_write(Path(directory).resolve()) is None
    except (OSError, RuntimeError):
        return False


def run_system_command(*command: str) -> str:
    """Run a system command and give its output.

    Raises:
        TierwiseError: with the command's own message, if it fails or is not there.
    """
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": tool_search_path(), "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise HostError(f"{command[0]} is not installed", "apt-get install util-linux mount") from None
    if result.returncode != 0:
        detail = " ".join((result.stderr or result.stdout).split()) or f"exit status {result.returncode}"
        raise TierwiseError(f"{' '.join(command)}: {detail}", "see the kernel's log with dmesg")
    return result.stdout
