"""Describes this machine, and checks it for what tierwise needs, with the fix for what is missing."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from tierwise import _core
from tierwise.host import cgroups, mounts
from tierwise.model.extras import install_command
from tierwise.model.units import GIB
from tierwise.results import RunConditions


def describe_machine() -> RunConditions:
    """Machine conditions to print beside every figure."""
    return RunConditions(
        host=platform.node(),
        cpu_model=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        operating_system=platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        tierwise_version=metadata.version("tierwise"),
    )


def busy_cpu_s() -> float:
    """CPU seconds that all cores together have been busy since boot."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


_MEMORY_NEEDED_BYTES = 2 * GIB
_DISK_NEEDED_BYTES = 2 * GIB


@dataclass(frozen=True)
class MachineCheck:
    """One finding. ``emulation`` marks a requirement of emulated devices."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
    emulation: bool = False


def check_machine() -> list[MachineCheck]:
    """Every check, in the order in which to fix them."""
    return [
        _root(),
        _device(Path("/dev/fuse"), "FUSE", "modprobe fuse; in a container pass --device /dev/fuse"),
        _device(
            Path("/dev/loop-control"), "loop devices", "modprobe loop; in a container run with --privileged"
        ),
        _ublk(),
        _mounts(),
        _tool("mkfs.ext4", "apt-get install e2fsprogs", emulation=True),
        _tool("mkfs.xfs", "apt-get install xfsprogs (only for --fs xfs)"),
        _cgroup(
            "memory cgroup",
            cgroups.memory_cgroup_version(),
            "boot with cgroup_enable=memory, or a memory limit on the database can stall the emulated disk",
        ),
        _cgroup(
            "block I/O cgroup",
            cgroups.block_io_cgroup_version(),
            "use a kernel with CONFIG_BLK_CGROUP, or reads and writes of an emulated disk wait behind "
            "flushes",
        ),
        _bpf(),
        _recording_cost(),
        _embedded_postgres(),
        _system_postgres(),
        _memory(),
        _disk(),
    ]


def failed_emulation_checks(checks: list[MachineCheck]) -> list[MachineCheck]:
    """Failed checks that prevent device emulation; empty if there are none."""
    return [check for check in checks if check.emulation and not check.ok]


def _root() -> MachineCheck:
    root = os.geteuid() == 0
    return MachineCheck(
        "root", root, f"user id {os.geteuid()}", "run as root, for example with sudo", emulation=True
    )


def _device(path: Path, name: str, fix: str) -> MachineCheck:
    if not path.exists():
        return MachineCheck(name, False, f"{path} is missing", fix, emulation=True)
    usable = os.access(path, os.R_OK | os.W_OK)
    return MachineCheck(
        name, usable, str(path) if usable else f"{path} is not accessible", fix, emulation=True
    )


def _ublk() -> MachineCheck:
    path = Path("/dev/ublk-control")
    fix = "modprobe ublk_drv, with Linux 6.5 or later (a shorter way to emulated disks)"
    return MachineCheck("ublk", path.exists(), str(path) if path.exists() else f"{path} is missing", fix)


def _mounts() -> MachineCheck:
    refused = mounts.mount_obstacle()
    fix = "run as root with CAP_SYS_ADMIN; in a container run with --privileged"
    return MachineCheck("mounts", refused is None, refused or "allowed", fix, emulation=True)


def _tool(name: str, fix: str, emulation: bool = False) -> MachineCheck:
    path = shutil.which(name, path=mounts.tool_search_path())
    return MachineCheck(name, path is not None, path or "not found", fix, emulation=emulation)


def _bpf() -> MachineCheck:
    impossible = _core.recording_impossible()
    reason, fix = impossible or ("the kernel has BTF", "")
    return MachineCheck("recorder", impossible is None, reason, f"{fix} (only for recording)")


def _recording_cost() -> MachineCheck:
    """Known before one tries it; docs/how-to/record.md says how it was measured."""
    detail = (
        "a database that uses all cores loses 10 to 12 % of its rate within bursts of half a second, so "
        "at most 0.5 % at the default duty of 1/25"
    )
    return MachineCheck("cost of recording", True, detail)


def _cgroup(name: str, version: int | None, fix: str) -> MachineCheck:
    return MachineCheck(name, version is not None, f"version {version}" if version else "not mounted", fix)


def _embedded_postgres() -> MachineCheck:
    try:
        return MachineCheck("embedded PostgreSQL", True, metadata.version("embedded-postgres"))
    except metadata.PackageNotFoundError:
        return MachineCheck("embedded PostgreSQL", False, "not installed", install_command("postgres"))


def _system_postgres() -> MachineCheck:
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    detail = str(paths[-1]) if paths else shutil.which("postgres") or "not found"
    return MachineCheck(
        "system PostgreSQL",
        detail != "not found",
        detail,
        "apt-get install postgresql (only for postgres-system)",
    )


def _memory() -> MachineCheck:
    available = psutil.virtual_memory().available
    return MachineCheck(
        "free memory",
        available >= _MEMORY_NEEDED_BYTES,
        f"{available / GIB:.1f} GiB",
        f"free {_MEMORY_NEEDED_BYTES / GIB:.0f} GiB: emulated devices keep what is written in memory",
    )


def _disk() -> MachineCheck:
    free = shutil.disk_usage(Path.cwd()).free
    return MachineCheck(
        "free disk here",
        free >= _DISK_NEEDED_BYTES,
        f"{free / GIB:.1f} GiB",
        f"free {_DISK_NEEDED_BYTES / GIB:.0f} GiB, or start from another directory",
    )
