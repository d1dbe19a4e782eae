"""What an emulated disk refuses, in one line with the fix, and that nothing is left then."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.commands import Finished, tierwise
from support.disk_traces import NAME, traces
from tierwise.device_models import profiles
from tierwise.host import mounts
from tierwise.host.disk.disk import WHOLE, EmulatedDisk, Partition
from tierwise.model.errors import TierwiseError

MIB = 1 << 20


def up(mount_dir: Path, **options: str) -> Finished:
    settings = {"profile": "ram", "size": "64M", "mount": str(mount_dir), **options}
    flags = [f"--{key}={value}" for key, value in settings.items()]
    return tierwise("disk", "up", NAME, *flags)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"size": "0"}, "--size"),
        ({"size": "-4G"}, "--size"),
        ({"size": "4 parsecs"}, "4G"),
        ({"size": "1M"}, "at least 16M"),
        ({"size": "900T"}, "do not fit on ram"),
        ({"profile": "hdd-7k3"}, "hdd-7k2"),
        ({"profile": "/nowhere.toml"}, "/nowhere.toml"),
        ({"fs": "ntfs"}, "ext4 or xfs"),
        ({"mount": "/proc"}, "mounted"),
        ({"mount": "/etc"}, "empty"),
        ({"mount": "/etc/passwd"}, "not a directory"),
    ],
    ids=str,
)
def test_bad_options(tmp_path: Path, options: dict[str, str], named: str) -> None:
    result = up(tmp_path / "mount", **options)
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1 and named in result.stderr, result.stderr
    assert traces(NAME, tmp_path / "mount") == []


def test_a_name_in_use(tmp_path: Path) -> None:
    with EmulatedDisk.up(
        NAME, profiles.load_profile("ram"), [Partition("data", 64 * MIB)], tmp_path / "first"
    ):
        result = up(tmp_path / "second")
        assert result.returncode == 2 and f"disk '{NAME}' exists" in result.stderr
        assert not (tmp_path / "second").exists()
        result = up(tmp_path / "first")
        assert result.returncode == 2 and "not empty" in result.stderr
    assert traces(NAME, tmp_path / "first") == []


def test_a_disk_of_a_live_process_is_not_taken_down_by_another(tmp_path: Path) -> None:
    with EmulatedDisk.up(
        NAME, profiles.load_profile("ram"), [Partition("data", 64 * MIB)], tmp_path / "mount"
    ) as disk:
        command = [sys.executable, "-m", "tierwise", "disk", "down", NAME]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 2 and f"belongs to process {os.getpid()}" in result.stderr
        assert disk.stats().name == NAME


def test_a_failure_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TierwiseError("no file system today", "come back")

    monkeypatch.setattr(mounts, "make_file_system", fail)
    with pytest.raises(TierwiseError, match="no file system today"):
        EmulatedDisk.up(NAME, profiles.load_profile("ram"), [Partition("data", 64 * MIB)], tmp_path / "mount")
    assert traces(NAME, tmp_path / "mount") == []


def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = profiles.load_profile("ram")
    object.__setattr__(profile, "text", "kind = 'ram'")
    with pytest.raises(TierwiseError, match=r"ram\.toml"):
        EmulatedDisk.up(NAME, profile, [Partition("data", 64 * MIB)], tmp_path / "mount")
    assert traces(NAME, tmp_path / "mount") == []


def test_two_disks_are_not_mounted_at_one_place(tmp_path: Path) -> None:
    """Both found it free, and the later one would hide the files of the other."""
    both = [(NAME, tmp_path / "mount"), (f"{NAME}-2", tmp_path / "mount")]

    def one(of: tuple[str, Path]) -> EmulatedDisk | TierwiseError:
        try:
            return EmulatedDisk.up(
                of[0], profiles.load_profile("hdd-7k2"), [Partition(WHOLE, 64 * MIB)], of[1]
            )
        except TierwiseError as error:
            return error

    with ThreadPoolExecutor() as threads:
        made = list(threads.map(one, both))
    disks = [disk for disk in made if isinstance(disk, EmulatedDisk)]
    refused = [error.message for error in made if isinstance(error, TierwiseError)]
    for disk in disks:
        disk.down()
    assert refused == [f"{tmp_path / 'mount'}: something is mounted there"]
    assert not (tmp_path / "mount").is_mount()


def test_a_mount_point_that_a_link_names_is_removed_with_the_disk(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there/mount")
    with EmulatedDisk.up(
        NAME, profiles.load_profile("ram"), [Partition("data", 64 * MIB)], tmp_path / "link"
    ):
        assert (tmp_path / "there" / "mount" / "data").is_mount()
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    (tmp_path / "loop").symlink_to("loop")
    result = up(tmp_path / "loop")
    assert result.returncode == 2 and "loop' cannot be resolved" in result.stderr


STUDY = """
name = "bad"
question = "?"
engines = ["postgres"]
workload = "order_entry"
clients = 1
transactions = 1
warmup_transactions = 0
repeats = 1
baseline = "a"
[sizes]
system = "128M"
log = "128M"
data = "24M"
index = "24M"
temp = "24M"
[devices.d]
profile = "ram"
[placements.a]
default = "d"
"""


def test_a_study_whose_disk_is_full(tmp_path: Path, run_dir: Path) -> None:
    file = tmp_path / "full.toml"
    file.write_text(STUDY, "utf-8")
    done = tierwise("study", "run", file, "--output", tmp_path / "results")
    assert done.returncode == 2 and done.stderr.strip().count("\n") == 0, done.stderr
    assert "No space left on device" in done.stderr
