"""What real file systems stand on: btrfs, overlay, a bind mount."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tierwise.capture import about
from tierwise.capture.devices import Devices
from tierwise.capture.facts import FileFacts
from tierwise.host.block_layer import BlockLayer
from tierwise.model.roles import Role
from tierwise.probe.place import look


@contextmanager
def loops(folder: Path, count: int) -> Iterator[list[str]]:
    found: list[str] = []
    try:
        for number in range(count):
            file = folder / f"disk{number}"
            with file.open("wb") as output:
                output.truncate(200 << 20)
            command = ["losetup", "--find", "--show", str(file)]
            found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        yield found
    finally:
        for device in found:
            subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def mounted(*arguments: str) -> Iterator[Path]:
    subprocess.run(["mount", *arguments], check=True)
    try:
        yield Path(arguments[-1])
    finally:
        subprocess.run(["umount", arguments[-1]], check=True)


@pytest.mark.parametrize("count", [1, 2])
def test_btrfs_has_all_of_its_devices(tmp_path: Path, count: int) -> None:
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs: apt-get install btrfs-progs")
    (tmp_path / "mnt").mkdir()
    with loops(tmp_path, count) as disks:
        subprocess.run(["mkfs.btrfs", "--quiet", *disks], check=True, capture_output=True)
        with mounted(disks[0], str(tmp_path / "mnt")) as top:
            subprocess.run(["btrfs", "subvolume", "create", str(top / "v")], check=True, capture_output=True)
            file = top / "v" / "log"
            file.write_bytes(b"x" * 100_000)
            os.sync()
            devices = Devices()
            devices.meet_all()
            met = len(devices.known)
            facts = FileFacts(devices, lambda _: Role.LOG).of(str(file))
            assert len(devices.known) == met, "a subvolume is no other device"
            device = devices.known[facts["device"]]
            assert device.mount == str(top) and device.chain[0].kind == "btrfs"
            names = {Path(disk).name for disk in disks}
            assert {link.name for link in device.chain if link.depth == 1} == device.disks == names
            assert facts["extents"] == [], "btrfs tells addresses of its own"
            (warning,) = about.warnings_of(devices)
            assert ("may be counted for wrong files" if count == 1 else "are not recorded") in warning
            assert f"btrfs on loop {sorted(names)[0]} ({tmp_path}/disk" in look(top / "v").label


def test_an_overlay_has_the_device_of_its_upper_directory(tmp_path: Path) -> None:
    for name in ("lower", "upper,it", "work", "mnt"):
        (tmp_path / name).mkdir()
    upper = BlockLayer().under_path(tmp_path)
    if not upper.devices:
        pytest.skip("the tests' directory is on no block device")
    escaped = str(tmp_path / "upper,it").replace(",", "\\,")
    options = f"lowerdir={tmp_path}/lower,upperdir={escaped},workdir={tmp_path}/work"
    with mounted("-t", "overlay", "overlay", "-o", options, str(tmp_path / "mnt")) as top:
        file = top / "log"
        file.write_bytes(b"x" * 100_000)
        os.sync()
        devices = Devices()
        device = FileFacts(devices, lambda _: Role.LOG).of(str(file))["device"]
        assert [link.kind for link in devices.known[device].chain[:2]] == ["overlay", upper.file_systems[0]]
        assert devices.known[device].name == upper.devices[0].name


def test_a_bind_mount_is_the_device_that_it_shows(tmp_path: Path) -> None:
    for name in ("data", "elsewhere"):
        (tmp_path / name).mkdir()
    with mounted("--bind", str(tmp_path / "data"), str(tmp_path / "elsewhere")) as top:
        assert BlockLayer().under_path(top) == BlockLayer().under_path(tmp_path)
