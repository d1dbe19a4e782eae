"""Volumes, encryption, arrays, btrfs, bind mounts: their chain, and requests found or reported missing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from checks.tools import about, left_behind, query, run, tierwise, work_folder

_COMMITS = """
import os, sys, time
log, data = (os.open(path, os.O_CREAT | os.O_RDWR) for path in sys.argv[1:3])
end, number = time.monotonic() + 10, 0
while time.monotonic() < end:
    for file, place in ((log, number % 1000), (data, number * 7 % 1000)):
        os.pwrite(file, os.urandom(4096), place * 4096)
        os.fdatasync(file)
    number += 1
"""

_WRITES = (
    "SELECT role, count(*) FROM blocks JOIN files USING (file) "
    "WHERE op = 'write' AND role IS NOT NULL GROUP BY role"
)


@dataclass(frozen=True)
class Found:
    """tierwise's findings about a log and data."""

    devices: dict[str, dict[str, Any]]
    """Devices from ``about.json``, by role."""
    writes: dict[str, int]
    """Attributed requests, by role."""
    warnings: str

    def kinds(self, role: str) -> list[str]:
        """Kinds in the chain of a role, down to the loop devices that serve as disks."""
        kinds = [link["kind"] for link in self.devices[role]["chain"]]
        last = len(kinds) - kinds[::-1].index("loop")
        return [kind for kind in kinds[:last] if kind not in {"disk", "partition"}]


def lvm() -> None:
    """Two linear volumes on one disk; one was extended beyond the other."""
    with _place("lvm", 1) as (undo, (disk,), folder):
        run("pvcreate", "-q", disk)
        run("vgcreate", "-q", "compat", disk)
        undo(lambda: run("vgremove", "-q", "--force", "compat"))
        run("lvcreate", "-q", "-y", "-L", "200M", "-n", "data", "compat")
        run("lvcreate", "-q", "-y", "-L", "100M", "-n", "log", "compat")
        run("lvextend", "-q", "-L", "+200M", "compat/data")
        data = _mounted(undo, folder / "data", "ext4", "/dev/compat/data")
        log = _mounted(undo, folder / "log", "ext4", "/dev/compat/log")
        recorded = _examine(folder, log, data)
        assert recorded.kinds("data") == recorded.kinds("log") == ["ext4", "LVM volume", "loop"], (
            recorded.devices
        )
        labels = {role: device["chain"][1]["label"] for role, device in recorded.devices.items()}
        assert labels == {"log": "compat-log", "data": "compat-data"}, labels
        assert recorded.devices["log"]["shared"] == recorded.devices["data"]["shared"], recorded.devices
        assert recorded.devices["log"]["first_sector"] > recorded.devices["data"]["first_sector"], (
            recorded.devices
        )
        _require_requests(recorded)
    print(f"two volumes share a disk; writes named {recorded.writes}")


def striped() -> None:
    """A striped volume has no requests, and shares the disk of a linear one."""
    with _place("striped", 2) as (undo, disks, folder):
        run("pvcreate", "-q", *disks)
        run("vgcreate", "-q", "compat", *disks)
        undo(lambda: run("vgremove", "-q", "--force", "compat"))
        run("lvcreate", "-q", "-y", "-L", "200M", "-i", "2", "-n", "data", "compat")
        run("lvcreate", "-q", "-y", "-L", "100M", "-n", "log", "compat", disks[1])
        data = _mounted(undo, folder / "data", "ext4", "/dev/compat/data")
        log = _mounted(undo, folder / "log", "ext4", "/dev/compat/log")
        recorded = _examine(folder, log, data)
        assert recorded.kinds("data") == ["ext4", "LVM volume", "loop", "ext4", "loop"], recorded.devices
        assert recorded.devices["log"]["shared"] == recorded.devices["data"]["shared"], recorded.devices
        assert recorded.writes.get("log", 0) > 0 and "data" not in recorded.writes, recorded.writes
        assert "requests for data are not recorded: the kernel tells none to LVM volume" in recorded.warnings
    print(recorded.warnings.splitlines()[0])


def crypt() -> None:
    """A file system in LUKS; the other on a disk of its own."""
    with _place("crypt", 2) as (undo, (disk, other), folder):
        key = folder / "key"
        key.write_bytes(b"compat")
        cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]
        run("cryptsetup", "luksFormat", "--batch-mode", *cheap, "--key-file", key, disk)
        run("cryptsetup", "open", "--key-file", key, disk, "compat-luks")
        undo(lambda: run("cryptsetup", "close", "compat-luks"))
        log = _mounted(undo, folder / "log", "ext4", "/dev/mapper/compat-luks")
        data = _mounted(undo, folder / "data", "xfs", other)
        recorded = _examine(folder, log, data)
        assert recorded.kinds("log") == ["ext4", "dm-crypt", "loop"], recorded.devices
        assert recorded.kinds("data") == ["xfs", "loop"], recorded.devices
        assert recorded.devices["log"]["shared"] != recorded.devices["data"]["shared"], recorded.devices
        _require_requests(recorded)
    print(f"writes named {recorded.writes}")


def md() -> None:
    """A mirror of two disks: probed as one device, without requests."""
    with _place("md", 2) as (undo, disks, folder):
        options = ["--level=1", "--raid-devices=2", "--metadata=1.2", "--run", "--assume-clean"]
        run("mdadm", "--create", "/dev/md127", *options, *disks)
        undo(lambda: run("mdadm", "--stop", "/dev/md127"))
        mount = _mounted(undo, folder / "mount", "xfs", "/dev/md127")
        recorded = _examine(folder, mount, mount)
        assert recorded.kinds("log") == ["xfs", "md raid1", "loop", "ext4", "loop"], recorded.devices
        assert recorded.devices["log"] == recorded.devices["data"], recorded.devices
        assert "are not recorded: the kernel tells none to md raid1" in recorded.warnings, recorded.warnings
        probed = _probed(mount)
        assert "2 physical devices lie under" in probed, probed
    print(probed.strip().splitlines()[0])


def btrfs() -> None:
    """One file system on two disks, with a subvolume for the log."""
    with _place("btrfs", 2) as (undo, disks, folder):
        run("mkfs.btrfs", "--quiet", *disks)
        (folder / "mount").mkdir()
        run("mount", disks[0], folder / "mount")
        undo(lambda: run("umount", folder / "mount"))
        run("btrfs", "subvolume", "create", folder / "mount" / "log")
        recorded = _examine(folder, folder / "mount" / "log", folder / "mount")
        assert recorded.kinds("log") == ["btrfs", "loop", "ext4", "loop"], recorded.devices
        assert recorded.devices["log"] == recorded.devices["data"], recorded.devices
        assert "are not recorded: the kernel tells none to btrfs" in recorded.warnings, recorded.warnings
        assert "2 physical devices lie under" in _probed(folder / "mount")
    print(recorded.warnings.splitlines()[0])


def bind_mounts() -> None:
    """Two bind mounts of one file system are one device with both roles."""
    with _place("bind", 1) as (undo, (disk,), folder):
        volume = _mounted(undo, folder / "volume", "xfs", disk)
        for name in ("log", "data"):
            for place in (volume / name, folder / name):
                place.mkdir()
            run("mount", "--bind", volume / name, folder / name)
            undo(partial(run, "umount", folder / name))
        recorded = _examine(folder, folder / "log", folder / "data")
        assert recorded.devices["log"] == recorded.devices["data"], recorded.devices
        assert set(recorded.devices["log"]["roles"]) == {"log", "data"}, recorded.devices
        _require_requests(recorded)
    print(f"writes named {recorded.writes}")


def _examine(folder: Path, log: Path, data: Path) -> Found:
    """Record a busy log and data, and check the profile and the redacted recording."""
    recording, redacted = folder / "of", folder / "redacted"
    work: list[str | Path] = ["python3", "-c", _COMMITS, log / "app.db-wal", data / "app.db"]
    tierwise("record", "-o", recording, "--rules", "sqlite", "--", *work, status=None)
    about_recording = about(recording)
    devices = {role: device for device in about_recording["devices"] for role in device["roles"]}
    assert set(devices) >= {"log", "data"}, about_recording["devices"]
    shown = tierwise("profile", recording, "--no-savings")
    for role in ("log", "data"):
        for link in devices[role]["chain"]:
            assert link["kind"] in shown and (link["name"] or "") in shown, f"{link} is not in: {shown}"
    tierwise("recording", "redact", recording, "-o", redacted)
    text = (redacted / "about.json").read_text("utf-8")
    for name in ("compat-", '"dm-0', '"loop0', '"md127', folder.name):
        assert name not in text, f"{name} is in: {text}"
    assert devices["log"]["chain"][0]["kind"] in _probed(log), "probe does not show the chain"
    return Found(devices, dict(query(recording, _WRITES)), "\n".join(about_recording["warnings"]))


def _require_requests(content: Found) -> None:
    for role in ("log", "data"):
        assert content.writes.get(role, 0) > 10, f"{role}: {content.writes}; {content.warnings}"
    assert "requests" not in content.warnings, content.warnings


def _probed(mount: Path) -> str:
    return tierwise("device", "probe", mount, "--duration", "5s", "--repeats", "1", "--size", "16M")


@contextlib.contextmanager
def _place(
    name: str, count: int
) -> Iterator[tuple[Callable[[Callable[[], object]], object], list[str], Path]]:
    """A callback registry for cleanup, ``count`` disks of 1 GiB, and a directory."""
    folder = work_folder(f"chain-{name}")
    with contextlib.ExitStack() as stack:
        disks = []
        for number in range(count):
            image = folder / f"disk{number}"
            with image.open("wb") as file:
                file.truncate(1 << 30)
            device = run("losetup", "--find", "--show", image).strip()
            stack.callback(run, "losetup", "--detach", device)
            disks.append(device)
        yield stack.callback, disks, folder
    assert not left_behind(), left_behind()


def _mounted(
    undo: Callable[[Callable[[], object]], object], point: Path, file_system: str, device: str
) -> Path:
    run(f"mkfs.{file_system}", "-q", device)
    point.mkdir()
    run("mount", device, point)
    undo(lambda: run("umount", point))
    return point


CHECKS = [lvm, striped, crypt, md, btrfs, bind_mounts]
