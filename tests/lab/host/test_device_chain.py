"""What real file systems stand on: btrfs, overlay, a bind mount."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tierwise import _core
from tierwise.probe.probe_target import inspect_probe_target


def layers(path: Path) -> dict[str, Any]:
    """What is below a path."""
    content: dict[str, Any] = json.loads(_core.layers_under(path, "[]"))
    return content


def device_of(place: Path) -> dict[str, Any]:
    """The device that holds a directory."""
    devices, (index,) = json.loads(_core.devices_of([place], "[]"))
    device: dict[str, Any] = devices[index]
    return device


@contextmanager
def loops(folder: Path, count: int) -> Iterator[list[str]]:
    names: list[str] = []
    try:
        for number in range(count):
            file = folder / f"disk{number}"
            with file.open("wb") as output:
                output.truncate(200 << 20)
            command = ["losetup", "--find", "--show", str(file)]
            names.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        yield names
    finally:
        for device in names:
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
            devices, indices = json.loads(_core.devices_of([top, top / "v"], "[]"))
            assert indices == [0, 0] and len(devices) == 1, "a subvolume is no other device"
            below, names = layers(top / "v"), {Path(disk).name for disk in disks}
            assert below["file_systems"] == ["btrfs"] and set(below["disks"]) == names
            assert {link["name"] for link in below["chain"] if link["depth"] == 1} == names
            assert not devices[0]["tells_places"], "btrfs tells addresses of its own"
            assert devices[0]["untraced"] == (None if count == 1 else "btrfs")
            assert (
                f"btrfs on loop {sorted(names)[0]} ({tmp_path}/disk" in inspect_probe_target(top / "v").label
            )


def test_an_overlay_has_the_device_of_its_upper_directory(tmp_path: Path) -> None:
    for name in ("lower", "upper,it", "work", "mnt"):
        (tmp_path / name).mkdir()
    upper = layers(tmp_path)
    if not upper["devices"]:
        pytest.skip("the tests' directory is on no block device")
    escaped = str(tmp_path / "upper,it").replace(",", "\\,")
    options = f"lowerdir={tmp_path}/lower,upperdir={escaped},workdir={tmp_path}/work"
    with mounted("-t", "overlay", "overlay", "-o", options, str(tmp_path / "mnt")) as top:
        assert layers(top)["file_systems"] == ["overlay", upper["file_systems"][0]]
        assert device_of(top)["name"] == Path(upper["devices"][0]).name


def test_a_bind_mount_is_the_device_that_it_shows(tmp_path: Path) -> None:
    for name in ("data", "elsewhere"):
        (tmp_path / name).mkdir()
    with mounted("--bind", str(tmp_path / "data"), str(tmp_path / "elsewhere")) as top:
        assert layers(top) == layers(tmp_path)
