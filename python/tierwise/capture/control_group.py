"""Limits of a recorded server's control groups, in version 2 and 1, that the compiled core does not read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tierwise.model.names import join_words
from tierwise.model.units import GIB, significant_text

ROOT = Path("/sys/fs/cgroup")
_DEVICES = Path("/sys/dev/block")
_IN_VERSION_2 = {"riops": "reads", "wiops": "writes", "rbps": "MB of reads", "wbps": "MB of writes"}
"""Fields of ``io.max``, and what they count."""
_IN_VERSION_1 = {
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
}


def throttled_memory_bytes(groups: Iterable[Path]) -> int | None:
    """Least memory above which the kernel reclaims pages of a group at once (``memory.high``)."""
    texts = (_text(group / "memory.high").strip() for group in groups)
    return min((int(text) for text in texts if text.isdecimal()), default=None)


def memory_limit_warning(limit_bytes: int, installed_bytes: int) -> list[str]:
    """What the memory of a recording is, where a control group leaves less than the machine has."""
    if limit_bytes >= installed_bytes:
        return []
    return [
        f"the server's control group leaves it {limit_bytes / GIB:,.3g} of {installed_bytes / GIB:,.3g} GiB "
        "of memory: answers count with these, and more memory is first a higher limit"
    ]


def io_limit_warning(pids: Iterable[int], groups: Iterable[Path]) -> list[str]:
    """What the groups' limits of block I/O mean for answers, if one holds for a device of the open files."""
    limits = _io_limits(groups)
    if not limits or not (used := limits.keys() & _devices_of_open_files(pids)):
        return []
    least = {name: min(limits[number].get(name, 1 << 64) for number in used) for name in _IN_VERSION_2}
    texts = [
        f"{significant_text(limit / 1e6 if name.endswith('bps') else limit)} {_IN_VERSION_2[name]} a second"
        for name, limit in least.items()
        if limit < 1 << 64
    ]
    return [
        f"the server's control group allows {join_words(texts)} of a device of its files: sessions that wait "
        "for this limit wait for no device, and predictions leave that out. Raise the limit and record again "
        "before you move a file"
    ]


def groups_of_process(pid: int, root: Path = ROOT, proc: Path = Path("/proc")) -> list[Path]:
    """Folders of a process's control groups and of their ancestors; of version 1, those of block I/O."""
    groups = list[Path]()
    for line in _text(proc / str(pid) / "cgroup").splitlines():
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        hierarchies = [root, root / "unified"] if controllers == "" else []
        if "blkio" in controllers.split(","):
            hierarchies = [root / "blkio", root / controllers]
        for hierarchy in hierarchies:
            group = hierarchy / name.lstrip("/")
            groups += [folder for folder in (group, *group.parents) if folder.is_relative_to(hierarchy)]
    return list(dict.fromkeys(groups))


def _io_limits(groups: Iterable[Path]) -> dict[str, dict[str, int]]:
    """The lowest limits for each device, by its number ``MAJOR:MINOR``."""
    limits = dict[str, dict[str, int]]()
    for number, name, text in (limit for group in groups for limit in _limits_of_group(group)):
        if name in _IN_VERSION_2 and text.isdecimal():
            of_device = limits.setdefault(number, {})
            of_device[name] = min(int(text), of_device.get(name, int(text)))
    return limits


def _limits_of_group(group: Path) -> Iterator[tuple[str, str, str]]:
    """Number of a device, name of a limit and its text, ``max`` for none."""
    for line in _text(group / "io.max").splitlines():
        number, *fields = line.split()
        for field in fields:
            name, _, text = field.partition("=")
            yield number, name, text
    for name, file in _IN_VERSION_1.items():
        for line in _text(group / file).splitlines():
            number, _, text = line.partition(" ")
            yield number, name, text


def _devices_of_open_files(pids: Iterable[int]) -> set[str]:
    """Numbers of the devices below the open files and the working directories, as limits name them."""
    numbers = set[int]()
    for pid in pids:
        with suppress(OSError):
            for path in [Path(f"/proc/{pid}/cwd"), *Path(f"/proc/{pid}/fd").iterdir()]:
                with suppress(OSError):  # it was closed meanwhile
                    about = path.stat()
                    if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
                        numbers.add(about.st_dev)
    devices = (_DEVICES / f"{os.major(number)}:{os.minor(number)}" for number in numbers)
    return {number for device in devices if device.exists() for number in _numbers_below(device.resolve())}


def _numbers_below(device: Path) -> set[str]:
    """Number of a device, of the disk of a partition, and of those that it is built on."""
    below = [device.parent] if (device / "partition").exists() else []
    with suppress(OSError):
        below += [link.resolve() for link in (device / "slaves").iterdir()]
    return {_text(device / "dev").strip()}.union(*map(_numbers_below, below))


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii", "replace")
    except OSError:
        return ""
