"""What an emulated disk refuses before it takes anything of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.disk_traces import NAME
from tierwise.cli import disk
from tierwise.device_models import profiles
from tierwise.host import doctor, ledger, mounts
from tierwise.host.disk.disk import EmulatedDisk, Partition
from tierwise.host.disk.disk_config import DiskFaults
from tierwise.model.errors import TierwiseError

MIB = 1 << 20


@pytest.mark.parametrize("missing", ["root", "/dev/fuse"])
def test_a_machine_that_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    check = doctor.MachineCheck(missing, False, f"{missing} is missing", "get it", emulation=True)
    monkeypatch.setattr(doctor, "check_machine", lambda: [check])
    with pytest.raises(TierwiseError, match=f"{missing} is missing: get it"):
        EmulatedDisk.up(NAME, profiles.load_profile("ram"), [Partition("data", 64 * MIB)], tmp_path / "mount")
    assert ledger.find("disk", NAME) is None


@pytest.mark.parametrize("slow", [{"slow_factor": 2.0}, {"slow_for_s": 5.0}])
def test_a_slow_disk_needs_a_factor_and_a_time(slow: dict[str, float]) -> None:
    with pytest.raises(TierwiseError, match="give both a factor above 1 and a time"):
        DiskFaults(**slow).commands(64 * MIB)


def test_a_seed_of_what_is_not_random_is_refused() -> None:
    with pytest.raises(TierwiseError, match="--seed is of --keep-random"):
        disk.cut_power(NAME, keep_random=False, seed=4)


def test_missing_xfs_tools_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "tool_search_path", lambda: "/nowhere")
    with pytest.raises(TierwiseError, match="apt-get install xfsprogs"):
        mounts.require_file_system_tools("xfs", 1 << 30, "--fs")


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("0s", {"after_s": 0.0}),
        ("1.5s", {"after_s": 1.5}),
        ("10min", {"after_s": 600.0}),
        ("250ms", {"after_s": 0.25}),
        ("0 requests", {"after_requests": 0}),
        ("1000 requests", {"after_requests": 1000}),
    ],
)
def test_a_disk_fails_after_a_duration_as_any_or_after_requests(text: str, times: dict[str, float]) -> None:
    assert disk._fault_times(text, "--after") == times


@pytest.mark.parametrize("text", ["1000", "-1s", "soon", "0", "1e3s", "9" * 4400 + "requests"])
def test_what_is_no_time_and_no_count_is_refused(text: str) -> None:
    with pytest.raises(TierwiseError, match=r"no time and no count.*10min"):
        disk._fault_times(text, "--after")


def test_more_requests_than_a_server_counts_are_refused() -> None:
    with pytest.raises(TierwiseError, match=r"cannot fail after .* requests: use 0 to 1,000,000,000,000,000"):
        DiskFaults(fail_after_requests=10**18).commands(64 * MIB)
