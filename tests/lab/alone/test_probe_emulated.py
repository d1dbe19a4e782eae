"""The probe finds again what an emulated disk was made of: within 10 %, and whole requests within 20 %.

On a machine that proves disturbed, within a factor of 3: the probe then measures waits for a processor too.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.eight_units import eight_units
from support.witness import Witness
from tierwise import _core
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.device_models.profiles import DeviceProfile
from tierwise.host import mounts
from tierwise.host.disk.disk import WHOLE, EmulatedDisk, Partition
from tierwise.model.errors import TierwiseError
from tierwise.probe import ProbeOptions, ProbeReport, probe_device
from tierwise.probe.device_probe import open_probe_target
from tierwise.probe.disk_fit import fit_disk
from tierwise.probe.probe_samples import CRYSTALDISKMARK
from tierwise.probe.probe_target import inspect_probe_target

NAME = f"probe-{os.getpid()}"
MIB = 1 << 20
LIMITED = """
kind = "volume"
summary = "1,000 I/Os a second; one request in a hundred takes longer than 8 ms"
capacity_gib = 1

[latency]
read_p50_us = 1000
read_p99_us = 8000
write_p50_us = 1200
write_p99_us = 8000
flush_us = 5
transfer_mb_per_s = 2000

[limits]
window_us = 50_000

[limits.iops]
most = 1000

[limits.mb_per_s]
most = 200

[source]
capacity_gib = "by choice, for this test"
latency = "by choice, for this test"
limits = "by choice, for this test"
"""
RANDOM = [name for name in CRYSTALDISKMARK.values() if name.startswith("rnd")]


@contextmanager
def whole_device(profile: DeviceProfile, tmp_path: Path) -> Iterator[Path]:
    """The block device of an emulated disk without a file system on it."""
    size_bytes = profile.capacity_bytes // MIB * MIB
    with EmulatedDisk.up(NAME, profile, [Partition(WHOLE, size_bytes)], tmp_path / "mount") as disk:
        mounts.unmount(tmp_path / "mount")
        yield Path(disk.stats().partitions[WHOLE].device)


def read_back(report: ProbeReport, tmp_path: Path) -> dict[str, Any]:
    """The fitted profile, once its text has proved to be one."""
    assert report.profile is not None
    profiles.parse_profile(report.profile, tmp_path / "fitted.toml")
    return tomllib.loads(report.profile)


def near(value: float, witness: Witness, share: float = 0.1) -> Any:
    if witness.disturbed():
        return pytest.approx(value * (3 + 1 / 3) / 2, abs=value * (3 - 1 / 3) / 2)
    return pytest.approx(value, rel=share)


ATTEMPTS = 3
"""What is wrong with the probe is wrong in each; what else the machine did is not."""


def attempt(find_again: Callable[[Path], None], tmp_path: Path) -> None:
    """Probe an emulated disk and compare, each time in a directory of its own, until it is found again."""
    for number in range(ATTEMPTS):
        directory = tmp_path / str(number)
        directory.mkdir()
        try:
            find_again(directory)
        except AssertionError as error:
            if number + 1 == ATTEMPTS:
                raise
            print(f"attempt {number + 1}: {error}")
        else:
            return


def test_a_disk_is_found_again(tmp_path: Path) -> None:
    attempt(find_disk_again, tmp_path)


def find_disk_again(directory: Path) -> None:
    profile = profiles.load_profile("hdd-10k-18g-fc")
    true = tomllib.loads(profile.text)
    with whole_device(profile, directory) as device, Witness() as witness:
        report = probe_device(device, ProbeOptions(seconds=10, repeats=3, destroy=True, fill=False))
    fitted = read_back(report, directory)
    assert fitted["kind"] == "hdd" and fitted["write_cache"] is False
    assert fitted["mechanics"]["rpm"] == near(true["mechanics"]["rpm"], witness)
    assert fitted["seek"]["average_us"] == near(true["seek"]["average_us"], witness)
    assert fitted["seek"]["full_us"] == near(true["seek"]["full_us"], witness)
    for end in (0, -1):
        assert rate(fitted, end) == near(rate(true, end), witness)
    assert report.flush.verdict == "honest", report.flush
    assert report.flush.device_class == "disk"


def rate(profile: dict[str, Any], zone: int) -> float:
    """Media rate of a zone, in sectors a minute."""
    return float(profile["zones"][zone]["sectors_per_track"] * profile["mechanics"]["rpm"])


def test_a_write_cache_is_seen(tmp_path: Path) -> None:
    text = profiles.load_profile("hdd-10k-18g-fc").text.replace("write_cache = false", "write_cache = true")
    profile = profiles.parse_profile(text, tmp_path / "cached.toml")

    options = ProbeOptions(destroy=True, fill=False)
    with (
        whole_device(profile, tmp_path) as device,
        open_probe_target(inspect_probe_target(device), options, lambda _: None) as (target, _),
        Witness() as witness,
    ):
        fit = fit_disk(target, 4, 2, Random(1))
    assert fit.write_cache
    assert fit.rpm.estimate == near(10_000, witness)


def test_an_ssd_is_found_again(tmp_path: Path) -> None:
    attempt(find_ssd_again, tmp_path)


def find_ssd_again(directory: Path) -> None:
    profile = eight_units()
    true = tomllib.loads(profile.text)

    # On a smaller partition ext4 has blocks of 1 KiB, and blocks of the file lie across units.
    parts = [Partition(WHOLE, 600 * MIB)]
    with EmulatedDisk.up(NAME, profile, parts, directory / "mount") as disk, Witness() as witness:
        disk.set_timing(False)
        report = probe_device(
            directory / "mount",
            ProbeOptions(seconds=7, size_bytes=32 * MIB, repeats=3),
            lambda phase: disk.set_timing(not phase.startswith("filling")),
        )
    found = read_back(report, directory)
    assert found["kind"] == "ssd"
    assert found["read_us"] == near(true["read_us"], witness)
    # It contains the path, which a busy host made an eighth of it, four times in a row.
    assert latency_us(found) == near(latency_us(true), witness, 0.2)
    assert found["channels"] == near(true["channels"], witness)
    assert found["flush_us"] == near(true["flush_us"], witness)
    assert found["link_mb_per_s"] <= true["link_mb_per_s"]
    rates_agree(report, profile, directory, witness)


def test_a_limit_and_a_tail_are_found_again(tmp_path: Path) -> None:
    """Medians made it twice as fast one at a time, and a large cache took in all writes at depth."""
    attempt(find_limit_again, tmp_path)


def find_limit_again(directory: Path) -> None:
    profile = profiles.parse_profile(LIMITED, directory / "limited.toml")
    parts = [Partition(WHOLE, 600 * MIB)]
    with EmulatedDisk.up(NAME, profile, parts, directory / "mount") as disk, Witness() as witness:
        disk.set_timing(False)
        report = probe_device(
            directory / "mount",
            ProbeOptions(seconds=30, size_bytes=32 * MIB, repeats=3),
            lambda phase: disk.set_timing(not phase.startswith("filling")),
        )
    rates_agree(report, profile, directory, witness)


def rates_agree(report: ProbeReport, profile: DeviceProfile, tmp_path: Path, witness: Witness) -> None:
    """The fitted profile serves random requests at the rates of the disk's own, at each measured depth."""
    assert report.profile is not None
    fitted = profiles.parse_profile(report.profile, tmp_path / "fitted.toml")
    for pattern in RANDOM:
        own, found = (
            simulate_job(each, SimulationJob(preset=pattern, virtual_s=2)).iops for each in (profile, fitted)
        )
        assert found == near(own, witness, 0.25), pattern
    assert not any(f" of {pattern}," in text for text in report.warnings for pattern in RANDOM)


def latency_us(profile: dict[str, Any]) -> float:
    """Of a read of 4 KiB alone."""
    return float(profile["read_overhead_us"] + profile["read_us"] + 4096 / profile["link_mb_per_s"])


def test_a_dropped_flush_is_found_out(tmp_path: Path) -> None:
    """A disk with a cache whose kernel was told that there is none: flushes never reach it."""
    text = profiles.load_profile("hdd-10k-18g-fc").text.replace("write_cache = false", "write_cache = true")
    profile = profiles.parse_profile(text, tmp_path / "cached.toml")

    with whole_device(profile, tmp_path) as device:
        queue = Path("/sys/block") / device.name / "queue/write_cache"
        queue.write_text("write through")
        report = probe_device(device, ProbeOptions(seconds=5, repeats=1, destroy=True, fill=False, fit=False))
    assert report.flush.verdict == "cannot have reached the medium"
    assert any("no flush at all" in reason for reason in report.flush.reasons)


def test_a_mounted_device_is_refused(tmp_path: Path) -> None:
    profile = eight_units()
    with EmulatedDisk.up(NAME, profile, [Partition(WHOLE, 32 * MIB)], tmp_path / "mount") as disk:
        device = Path(disk.stats().partitions[WHOLE].device)
        with pytest.raises(TierwiseError, match="is mounted at"):
            probe_device(device, ProbeOptions(destroy=True))
        mounts.unmount(tmp_path / "mount")
        with pytest.raises(TierwiseError, match="destroys what is on it"):
            probe_device(device, ProbeOptions())
        with pytest.raises(TierwiseError, match="in use"):
            held = _core.ProbeTarget.open_device(str(device))
            try:
                _core.ProbeTarget.open_device(str(device))
            finally:
                del held
