"""Roles that share a real device, told apart by where their files lie."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.tiny_study import Watcher
from tierwise.host import ledger
from tierwise.lab import studies as study
from tierwise.lab.analysis.placement_summary import summarise_placement
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.studies.runner.real_devices import RoleRequests
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results import RunResult

pytestmark = pytest.mark.usefixtures("run_dir")

STUDY = """
name = "shared"
question = "?"
engines = ["postgres"]
workload = "single_commit"
scale = 0.5
clients = 2
seconds = 4
repeats = 1
baseline = "two"
[devices.fast]
path = "{path}/fast"
[devices.slow]
path = "{path}/slow"
[placements.two]
log = "fast"
default = "slow"
[settings.postgres]
shared_buffers = "16MB"
"""


@pytest.fixture(params=["ext4", "xfs"])
def device(request: pytest.FixtureRequest, open_path: Path) -> Iterator[Path]:
    """A file system on a loop device, which stands for a disk."""
    image, mount = open_path / "image", open_path / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(2 << 30)
    subprocess.run([f"mkfs.{request.param}", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    mount.chmod(0o755)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def measured(device: Path, out: Path) -> RunResult:
    for name in ("fast", "slow"):
        (device / name).mkdir()
    directory = runner.run_study(
        study.parse_study(STUDY.format(path=device), "shared.toml"), out, Watcher(), seed=3
    )
    (result,) = runner.finished_runs_in(directory)
    assert result.status == "ok", result.problems
    assert not ledger.entries()
    return result


def test_the_parts_are_the_devices_and_the_log_is_what_the_engine_wrote(device: Path, tmp_path: Path) -> None:
    result = measured(device, tmp_path / "results")
    device_of_role, other = sorted(result.devices, key=lambda device: device.unattributed is None)
    assert (
        device_of_role.io
        and device_of_role.unattributed
        and device_of_role.untraced
        and other.unattributed is None
    )
    parts = [*result.io.values(), device_of_role.unattributed]
    for figure in ("read_bytes", "write_bytes"):
        traced, counted = sum(getattr(part, figure) for part in parts), getattr(device_of_role.io, figure)
        assert traced == pytest.approx(counted, rel=0.05, abs=64 << 10), figure
        assert getattr(device_of_role.untraced, figure) == counted - traced
    assert result.counters and result.counters.log_bytes and result.transactions
    # The log is written in pages of 8 KiB, the last of which is written again by each commit.
    again_bytes = 2 * 8192 * result.transactions
    written_bytes = result.io[Role.LOG].write_bytes
    assert 0.9 * result.counters.log_bytes <= written_bytes <= result.counters.log_bytes + again_bytes
    assert device_of_role.unattributed.flushes and result.io[Role.LOG].flushes is None
    (note,) = summarise_placement("two", [result], 1).io_notes
    assert "told apart by where their files lie" in note


def test_each_role_has_the_bytes_of_its_own_files(device: Path) -> None:
    places = {role: device / role for role in (Role.LOG, Role.DATA)}
    for place in places.values():
        place.mkdir()
    with ExitStack() as undo:
        requests = RoleRequests(places, undo)
        for size in (1 << 20, 3 << 20):
            requests.begin()
            for role, factor in ((Role.LOG, 1), (Role.DATA, 2)):
                _write(places[role] / "file", factor * size)
            shares = requests.end()
            assert shares.roles[Role.LOG]["write_bytes"] == size
            assert shares.roles[Role.DATA]["write_bytes"] == 2 * size
            (rest,) = shares.unattributed.values()
            assert rest["flushes"] >= 1 and rest["write_bytes"] < size
    assert not ledger.entries()


def _write(path: Path, size_bytes: int) -> None:
    subprocess.run(
        ["dd", "if=/dev/urandom", f"of={path}", "bs=64K", f"count={size_bytes >> 16}", "conv=fsync"],
        check=True,
        capture_output=True,
    )


def test_a_place_without_a_device_is_refused(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    with ExitStack() as undo, pytest.raises(TierwiseError, match="no block device is under it"):
        RoleRequests({Role.LOG: memory, Role.DATA: tmp_path}, undo)
    assert not ledger.entries()


def test_events_that_cannot_be_read_leave_the_whole_device(
    device: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(_: RoleRequests) -> None:
        raise TierwiseError("the kernel's events could not be read", "see tierwise doctor")

    monkeypatch.setattr(RoleRequests, "end", unread)
    result = measured(device, tmp_path / "results")
    assert not result.io and all(role_io.io is not None for role_io in result.devices)
    assert any("could not be read" in (device.not_by_role or "") for device in result.devices)


def test_a_kernel_that_traces_nothing_leaves_the_whole_device(
    device: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise TierwiseError("cannot record here: this kernel has no BTF", "use one that has it")

    monkeypatch.setattr("tierwise.lab.studies.runner.real_devices._core.RequestCounter", refused)
    result = measured(device, tmp_path / "results")
    assert not result.io
    assert all(role_io.io is not None for role_io in result.devices)
    (note,) = summarise_placement("two", [result], 1).io_notes
    assert "counted as a whole: cannot record here: this kernel has no BTF" in note
