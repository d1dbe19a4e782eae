"""What the probe refuses, and the order of its measurements."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tierwise.cli import app
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.model.errors import TierwiseError
from tierwise.probe import probe_target as probe_place
from tierwise.probe.device_probe import profile_contradictions
from tierwise.probe.probe_samples import CRYSTALDISKMARK, interleaved_repeats
from tierwise.probe.probe_target import choose_probe_file_bytes, inspect_probe_target
from tierwise.results import PatternResult

MIB = 1 << 20


def test_reads_come_before_writes_in_every_repeat() -> None:
    from random import Random

    names = list(CRYSTALDISKMARK.values())
    order = list(interleaved_repeats(names, 3, Random(1)))
    for start in (0, 8, 16):
        block = order[start : start + 8]
        assert sorted(block) == sorted(names)
        assert all("read" in name for name in block[:4])
    assert order[:8] != order[8:16]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/proc/self/nothing"], "No such file"),
        (["/proc"], "no room for 16 MiB"),
        (["/dev/null"], "not a directory"),
        ([".", "--duration", "1s"], "1 s is too short"),
        ([".", "--duration", "5s", "--repeats", "1000000"], "give 312 or fewer, or a longer --duration"),
        ([".", "--size", "4096T"], "no room for"),
        ([".", "--size", "1"], "--size: a file of 1 byte tells nothing: give 16M or more"),
        ([".", "--size", "much"], "--size"),
        ([".", "-o", "x.json"], "'x.json' is no profile"),
        ([".", "--size", "16M", "--no-fill"], "--destroy and --no-fill are of a block device"),
        ([".", "--engine", "magic", "--size", "16M"], "--engine: 'magic'"),
        ([".", "--pattern", "randread-5q", "--size", "16M", "--duration", "5s"], "randread-5q"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["device", "probe", *arguments])
    assert isinstance(result.exception, TierwiseError)
    assert message in str(result.exception) and "\n" not in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [(os.ST_RDONLY, "mounted read-only: name another directory"), (0, "may not be written by you")],
)
def test_a_directory_that_takes_no_file_says_why(
    flags: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were "not a directory that you may write"."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(TierwiseError, match=message):
        inspect_probe_target(tmp_path)


def test_memory_is_told_from_storage() -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or inspect_probe_target(shared).file_system != "tmpfs":
        pytest.skip("no tmpfs here")
    place = inspect_probe_target(shared)
    assert place.memory and place.block is None and place.write_cache is None


def test_default_size_leaves_room(tmp_path: Path) -> None:
    place = inspect_probe_target(tmp_path)
    assert choose_probe_file_bytes(place, None, 64 * MIB) == 64 * MIB
    with pytest.raises(TierwiseError, match="no room for"):
        choose_probe_file_bytes(place, 1 << 60, 64 * MIB)


def test_a_profile_that_contradicts_what_was_measured_is_said_to() -> None:
    text = profiles.load_profile("ssd-nvme-dc").text
    rates = {
        name: simulate_job(
            profiles.load_profile("ssd-nvme-dc"), SimulationJob(preset=name, count=200_000)
        ).iops
        for name in CRYSTALDISKMARK.values()
    }

    def measured(factor: float) -> dict[str, list[PatternResult]]:
        return {
            name: [PatternResult(requests=round(rate * factor * 100), bytes=0, elapsed_s=100.0)] * 2
            for name, rate in rates.items()
        }

    assert profile_contradictions(text, measured(0.85)) == profile_contradictions(text, measured(1.2)) == []
    for factor in (0.7, 1.4):
        said = profile_contradictions(text, measured(factor))
        assert len(said) == len(rates)
        alone = next(line for line in said if "rnd4k-q1t1-read" in line)
        assert f"{rates['rnd4k-q1t1-read']:,.0f} requests a second" in alone


def test_a_disk_may_call_itself_anything(tmp_path: Path) -> None:
    (tmp_path / "device").mkdir()
    (tmp_path / "device/model").write_bytes(b"QEMU \xb5\n")
    assert probe_place._is_virtual(tmp_path)
