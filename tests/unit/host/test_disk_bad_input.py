"""What an emulated disk refuses before it takes anything of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.disk_traces import NAME
from tierwise.cli import disk
from tierwise.device_models import profiles
from tierwise.host import doctor, ledger, mounts
from tierwise.host.disk.config import Faults
from tierwise.host.disk.disk import EmulatedDisk, Partition
from tierwise.model.errors import TierwiseError

MIB = 1 << 20


@pytest.mark.parametrize("missing", ["root", "/dev/fuse"])
def test_a_machine_that_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    check = doctor.Check(missing, False, f"{missing} is missing", "get it", emulation=True)
    monkeypatch.setattr(doctor, "examine", lambda: [check])
    with pytest.raises(TierwiseError, match=f"{missing} is missing: get it"):
        EmulatedDisk.up(NAME, profiles.load("ram"), [Partition("data", 64 * MIB)], tmp_path / "mount")
    assert ledger.find("disk", NAME) is None


@pytest.mark.parametrize("slow", [{"slow_factor": 2.0}, {"slow_for_s": 5.0}])
def test_a_slow_disk_needs_a_factor_and_a_time(slow: dict[str, float]) -> None:
    with pytest.raises(TierwiseError, match="give both a factor above 1 and a time"):
        Faults(**slow).commands(64 * MIB)


def test_a_seed_of_what_is_not_random_is_refused() -> None:
    with pytest.raises(TierwiseError, match="--seed is of --keep-random"):
        disk.cut(NAME, keep_random=False, seed=4)


def test_missing_xfs_tools_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_SEARCH_PATH", "/nowhere")
    with pytest.raises(TierwiseError, match="apt-get install xfsprogs"):
        mounts.require_tools("xfs", 1 << 30, "--fs")
