"""What a file system stands on, down to the disks, and which requests are those of its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.fake_sysfs import FakeSysfs
from tierwise.capture import about
from tierwise.capture.devices import Devices
from tierwise.host.block_layer import Base, BlockLayer
from tierwise.model.device_chain import ChainLink, in_words
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.probe.place import look
from tierwise.recording import Device
from tierwise.report.recording.profile import device_lines

GB = 10**9 // 512
SOMEWHERE = Path("/proc")
"""On a mount that is no overlay; its own number does not count."""


@pytest.fixture
def sysfs(tmp_path: Path) -> FakeSysfs:
    return FakeSysfs(tmp_path / "sys")


def layer_of(sysfs: FakeSysfs) -> BlockLayer:
    return BlockLayer(sysfs.root, sysfs.table)


def devices_of(sysfs: FakeSysfs, **roles: tuple[int, int]) -> Devices:
    """Devices that were met in this order, each for a role."""
    devices = Devices(layer=layer_of(sysfs))
    for role, number in roles.items():
        assert devices.index_of(os.makedev(*number), SOMEWHERE, Role(role)) is not None
    return devices


def two_volumes(sysfs: FakeSysfs) -> None:
    """Two logical volumes on one partition, of which the first was grown behind the second."""
    disk = sysfs.disk("sda", (8, 0), 500 * GB, **{"device/model": "ST500"})
    part = sysfs.partition(disk, "sda2", (8, 2), 1000, 400 * GB)
    lvm = {"dm/uuid": "LVM-abc"}
    grown = "0 600 linear 8:2 2048\n600 400 linear 8:2 9048\n"
    sysfs.volume("dm-0", (253, 0), 1000, [part], grown, **lvm, **{"dm/name": "pg-data"})
    sysfs.volume("dm-1", (253, 1), 5000, [part], "0 5000 linear 8:2 3048\n", **lvm, **{"dm/name": "pg-log"})


def test_volumes_on_one_disk_share_it_and_have_its_requests(sysfs: FakeSysfs) -> None:
    two_volumes(sysfs)
    devices = devices_of(sysfs, data=(253, 0), log=(253, 1))
    assert devices.shared == [0, 0]
    data, log = devices.known
    place = [(one.number, one.first_sector, one.sectors, one.offset_sectors) for one in data.stretches]
    assert place == [(8 << 20, 3048, 600, 0), (8 << 20, 10048, 400, 600)]
    assert [(one.number, one.first_sector) for one in log.stretches] == [(8 << 20, 4048)]
    assert (data.first_sector, log.first_sector) == (3048, 4048)
    assert in_words(data.chain) == (
        "proc on LVM volume dm-0 (pg-data, 0.0 GB) on partition sda2 (400.0 GB) "
        "on disk sda (ST500, 500.0 GB, rotational)"
    )
    assert about.warnings_of(devices) == []


def test_other_disks_are_not_shared(sysfs: FakeSysfs) -> None:
    sysfs.disk("sda", (8, 0), GB)
    sysfs.disk("sdb", (8, 16), GB)
    assert devices_of(sysfs, data=(8, 0), log=(8, 16)).shared == [0, 1]


def test_a_volume_over_two_disks_joins_what_lies_on_either(sysfs: FakeSysfs) -> None:
    one, other = (sysfs.disk(f"sd{letter}", (8, at), GB) for letter, at in (("a", 0), ("b", 16)))
    parts = [sysfs.partition(disk, f"{disk.name}1", (8, at), 64, 100) for disk, at in ((one, 1), (other, 17))]
    sysfs.disk("sdc", (8, 32), GB)
    stripes = "0 200 striped 2 128 8:1 0 8:17 0\n"
    sysfs.volume("dm-0", (253, 0), 200, parts, stripes, **{"dm/uuid": "LVM-x", "dm/name": "s"})
    devices = devices_of(sysfs, log=(8, 0), index=(8, 32), temp=(8, 16), data=(253, 0))
    assert devices.shared == [0, 1, 0, 0]
    (warning,) = about.warnings_of(devices)
    assert warning.startswith("requests for data are not recorded: the kernel tells none to LVM volume")


def test_encryption_shifts_sectors_by_its_header(sysfs: FakeSysfs) -> None:
    two_volumes(sysfs)
    below = sysfs.root / "devices/virtual/dm-1"
    table = "0 900 crypt aes-xts-plain64 :64:logon:cryptsetup:key 0 253:1 4096 1 allow_discards\n"
    sysfs.volume("dm-2", (253, 2), 900, [below], table, **{"dm/uuid": "CRYPT-LUKS2-1", "dm/name": "luks"})
    (device,) = devices_of(sysfs, log=(253, 2)).known
    assert [(one.number, one.first_sector, one.sectors) for one in device.stretches] == [
        (8 << 20, 1000 + 3048 + 4096, 900)
    ]
    assert [link.kind for link in device.chain] == ["proc", "dm-crypt", "LVM volume", "partition", "disk"]


def test_a_volume_on_an_array_is_named_with_all_of_its_disks(sysfs: FakeSysfs) -> None:
    disks = [sysfs.disk(f"sd{letter}", (8, at), GB) for letter, at in (("a", 0), ("b", 16))]
    array = sysfs.volume("md0", (9, 0), GB, disks, **{"md/level": "raid1"})
    table = "0 500 linear 9:0 2048\n"
    sysfs.volume("dm-0", (253, 0), 500, [array], table, **{"dm/uuid": "LVM-x", "dm/name": "v"})
    devices = devices_of(sysfs, log=(253, 0), data=(8, 16))
    assert devices.shared == [0, 0]
    assert devices.known[0].first_sector == 2048
    assert in_words(devices.known[0].chain).endswith(
        "on md raid1 md0 (1.0 GB) on disk sda (1.0 GB, rotational), and on disk sdb (1.0 GB, rotational)"
    )
    (warning,) = about.warnings_of(devices)
    assert "requests for log are not recorded: the kernel tells none to md raid1" in warning


def test_without_dmsetup_the_requests_of_a_volume_are_said_to_be_missing(sysfs: FakeSysfs) -> None:
    two_volumes(sysfs)

    def missing(_: str) -> str:
        raise TierwiseError("dmsetup is not installed", "install it")

    devices = Devices(layer=BlockLayer(sysfs.root, missing))
    devices.index_of(os.makedev(253, 0), SOMEWHERE, Role.DATA)
    assert "requests for data are not recorded" in about.warnings_of(devices)[0]


def test_a_file_system_in_memory_is_said_to_have_no_device() -> None:
    if look(Path("/dev/shm")).file_system != "tmpfs":
        pytest.skip("no tmpfs here")
    assert look(Path("/dev/shm")).label == "/dev/shm (tmpfs, no block device)"
    assert BlockLayer().under_path(Path("/dev/shm")) == Base(("tmpfs",), ())
    devices = Devices()
    assert devices.index_of(Path("/dev/shm").stat().st_dev, Path("/dev/shm"), Role.LOG) is None
    assert devices.without == {"tmpfs": {Role.LOG}}


def test_a_profile_says_what_each_role_lies_on() -> None:
    def device(role: Role, name: str, shared: int, chain: bool = True) -> Device:
        links = [ChainLink(depth=0, kind="xfs"), ChainLink(depth=1, kind="LVM volume", name=name)]
        facts = {"major": 253, "minor": 0, "mount": None, "first_sector": 0, "sectors": 1, "profile": None}
        return Device(
            name=name, roles=[role], shared=shared, write_cache=True, chain=links if chain else [], **facts
        )

    lines = list(device_lines([device(Role.LOG, "dm-0", 0), device(Role.DATA, "dm-1", 0)]))
    assert lines == [
        "Device of log: xfs on LVM volume dm-0; physically shared with data.",
        "Device of data: xfs on LVM volume dm-1; physically shared with log.",
    ]
    assert list(device_lines([device(Role.LOG, "dm-0", 0, chain=False)])) == []
