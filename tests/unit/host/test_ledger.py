"""The ledger: identities of processes, entries, directories."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.commands import tierwise
from tierwise.host import clean, ledger, mounts, processes
from tierwise.host.disk.disk import EmulatedDisk, all_disks
from tierwise.host.disk.disk_teardown import take_down_disk
from tierwise.host.disk.partitions import emulated_partitions
from tierwise.model.errors import TierwiseError


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def test_an_identity_is_not_fooled_by_a_pid_used_again() -> None:
    mine = ledger.ProcessIdentity.mine()
    assert mine.alive
    assert not ledger.ProcessIdentity(mine.pid, mine.start_ticks + 1, mine.boot_id).alive
    assert not ledger.ProcessIdentity(mine.pid, mine.start_ticks, "another boot").alive


def test_entries_are_unique_and_survive_updates() -> None:
    entry = ledger.add("disk", "a", home="/x")
    with pytest.raises(TierwiseError, match="disk 'a' exists"):
        ledger.add("disk", "a")
    entry.update(more=1)
    assert [entry.facts for entry in ledger.entries("disk")] == [{"home": "/x", "more": 1}]
    entry.remove()
    assert ledger.entries() == []


def test_a_program_that_is_not_there_is_named_and_leaves_nothing() -> None:
    with pytest.raises(TierwiseError, match="no-such-program is not a program"):
        processes.start("x", ["no-such-program"])
    assert ledger.entries() == []


def test_a_directory_that_cannot_be_made_leaves_no_entry(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="can be written"):
        ledger.make_directory("x", parent=tmp_path / "missing")
    assert ledger.entries() == []


def test_a_full_run_directory_is_named_and_keeps_no_part_of_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path, *_: object, **__: object) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(TierwiseError, match=rf"{tmp_path}/run/disk-a\.json: No space left on device: free"):
        ledger.add("disk", "a")
    assert list((tmp_path / "run").iterdir()) == []


def test_the_run_directory_is_named_as_the_kernel_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("TIERWISE_RUN_DIR", str(tmp_path / "link" / "run"))
    assert ledger.run_dir() == tmp_path / "real" / "run"
    monkeypatch.setenv("TIERWISE_RUN_DIR", "run")
    with pytest.raises(TierwiseError, match="TIERWISE_RUN_DIR: run is relative"):
        ledger.run_dir()


def test_a_disk_that_another_process_makes_is_not_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ledger.add("disk", "a", home="/x", partitions=[])
    parent = ledger.ProcessIdentity.of(os.getppid())
    assert parent is not None
    with pytest.raises(TierwiseError, match=f"disk 'a' belongs to process {parent.pid}"):
        EmulatedDisk(entry.update(owner=parent), {}).down()


def test_a_directory_with_a_mount_behind_a_link_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    made = ledger.make_directory("x", parent=tmp_path / "link")
    inside = tmp_path / "real" / made.path.name / "mounted"
    inside.mkdir()
    monkeypatch.setattr(mounts, "mounts", lambda: [mounts.Mount(inside, (7, 0), "ext4", "/dev/loop0", 1)])
    made.entry.update(owner=ledger.ProcessIdentity(1, -1, "another boot"))
    with pytest.raises(TierwiseError, match="/dev/loop0 is mounted in it"):
        clean.clean()
    assert inside.is_dir()


def test_a_directory_of_which_a_part_stays_keeps_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ledger.make_directory("x", parent=tmp_path)
    inside = made.path / "mounted"
    inside.mkdir()
    (inside / "row").touch()
    with monkeypatch.context() as patch:
        mount = mounts.Mount(inside, (7, 0), "ext4", "/dev/loop0", 1)
        patch.setattr(mounts, "mounts", lambda: [mount])
        made.remove()
        assert (inside / "row").exists()
        patch.setattr(mounts, "mounts", list)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        made.remove()
    assert [entry.name for entry in ledger.entries()] == [made.path.name]
    made.remove()
    assert not made.path.exists()
    assert ledger.entries() == []


PLACED = {"name": "disk", "device": "/dev/x", "mount": "/x", "file_system": "ext4", "size_bytes": 4096}
DISK: dict[str, Any] = {
    "home": "/x",
    "profile": "ram",
    "model": "ram",
    "rotational": False,
    "write_cache": False,
    "partitions": [],
    "server": {"pid": 1},
}


def test_a_disk_that_is_still_being_made_says_so() -> None:
    entry = ledger.add("disk", "a", **DISK)
    assert "disk 'a' is still being made" in all_disks()[1][0].problem
    entry.remove()


def test_a_disk_of_another_version_is_named_with_what_removes_it() -> None:
    as_before = {("loop" if key == "device" else key): value for key, value in PLACED.items()}
    entry = ledger.add("disk", "a", **DISK | {"partitions": [as_before]})
    disk = EmulatedDisk.find("a")
    for asked in (disk.stats, disk.cut, emulated_partitions):
        with pytest.raises(
            TierwiseError, match=r"disk-a\.json: of another version .*: tierwise disk down a$"
        ):
            asked()
    (silent,) = all_disks()[1]
    assert (silent.name, silent.mounts) == ("a", [Path("/x")])
    listed = tierwise("disk", "list")
    assert "a gives no counters, mounted at /x: tierwise disk stats a says why" in listed.stderr
    (printed,) = json.loads(tierwise("disk", "list", "--format", "json").stdout)["disks"]
    assert printed == {"name": "a", "mounts": ["/x"], "problem": silent.problem}
    assert "of another version" in silent.problem
    entry.remove()


@pytest.mark.parametrize("facts", [{}, {"home": None}, {"home": "/x"}], ids=str)
def test_an_entry_of_a_disk_without_its_own_home_is_not_undone(facts: dict[str, object]) -> None:
    entry = ledger.add("disk", "a", **facts)
    with pytest.raises(TierwiseError, match=r"disk-a\.json: .* is not the home of disk a"):
        take_down_disk(entry)
    entry.remove()


@pytest.mark.parametrize("facts", [{}, {"partitions": 7}, {"partitions": [{"name": "x"}]}], ids=str)
def test_an_entry_of_a_disk_that_says_too_little_is_named(facts: dict[str, object]) -> None:
    entry = ledger.add("disk", "a", home="/x", **facts)
    with pytest.raises(TierwiseError, match=r"disk-a\.json: damaged entry of the ledger"):
        EmulatedDisk.find("a")
    assert [(disk.name, disk.mounts) for disk in all_disks()[1]] == [("a", [])]
    for owner, fix in (
        (ledger.ProcessIdentity.mine(), f"end process {os.getpid()}, then tierwise clean"),
        (ledger.ProcessIdentity(1, -1, "another boot"), "tierwise clean"),  # that process 1 is another one
    ):
        entry.update(owner=owner)
        with pytest.raises(TierwiseError) as refused:
            EmulatedDisk.find("a")
        assert refused.value.fix == fix
    entry.remove()


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_damaged_file_of_a_disk_is_named_with_what_removes_it(tmp_path: Path, text: str) -> None:
    ledger.add("disk", "a", **DISK | {"home": str(tmp_path)})
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(TierwiseError, match=r"config\.json: .*tierwise disk down a"):
        emulated_partitions()
