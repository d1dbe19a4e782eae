"""``tierwise device simulate``: figures, files of times, and one line for bad input."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import Finished, tierwise
from support.paths import GOLDEN
from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.model.errors import TierwiseError

MEMORY = """
kind = "ram"
summary = "memory with times that are easy to add up"
capacity_mb = 1
read_latency_us = 100
write_latency_us = 50
flush_latency_us = 500
link_mb_per_s = 0

[source]
capacity_mb = "estimated: chosen to be easy to add up"
read_latency_us = "estimated: chosen to be easy to add up"
write_latency_us = "estimated: chosen to be easy to add up"
flush_latency_us = "estimated: chosen to be easy to add up"
link_mb_per_s = "estimated: chosen to be easy to add up"
"""


def cli(*arguments: str | Path) -> Finished:
    return tierwise("device", *arguments)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    file = tmp_path / "memory.toml"
    file.write_text(MEMORY)
    return file


def test_a_file_of_requests_gives_figures_and_times(memory: Path, tmp_path: Path) -> None:
    requests, times = tmp_path / "requests.csv", tmp_path / "times.csv"
    requests.write_text("op,lbn,sectors,think_ms\nR,0,8,1\nW,8,8,0\nF,0,0,0\nD,8,8,0\n")
    done = cli("simulate", memory, "--requests", requests, "--times", times, "--format", "json")
    content: dict[str, Any] = json.loads(done.stdout)
    # 100 µs, a pause of 1 ms, 50 µs, 500 µs, 50 µs.
    assert content["virtual_s"] == pytest.approx(1.7e-3)
    assert content["busy_share"] == pytest.approx(0.7 / 1.7)
    assert content["mean_us"] == pytest.approx(175)
    assert content["iops"] == pytest.approx(2 / 1.7e-3)
    assert content["write_amplification"] == 1
    assert set(content["ops"]) == {"read", "write", "flush", "discard"}
    assert content["compared"] is None
    with times.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["service_us"]) for row in rows] == [100, 50, 500, 50]
    assert [row["op"] for row in rows] == ["R", "W", "F", "D"]


def test_the_table_is_for_people(memory: Path) -> None:
    done = cli("simulate", memory, "--preset", "mixed50-4k-qd4", "--duration", "10ms")
    assert done.returncode == 0, done.stderr
    for expected in (
        "read",
        "write",
        "all",
        "p99.9",
        "busy",
        "write amplification",
        "requests per CPU-second",
    ):
        assert expected in done.stdout


def test_a_disk_that_waits_for_its_platter_takes_a_turn_a_flush() -> None:
    """With the cache off, each append but the first finds its sector just gone by: a turn at 7,200 rpm."""
    simulation = simulate_job(
        profiles.load_profile("hdd-7k2"), SimulationJob(preset="log-append-8k", count=200)
    )
    pair_us = simulation.ops["write"].mean_us + simulation.ops["flush"].mean_us
    assert pair_us == pytest.approx(60e6 / 7200, rel=0.02)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "line 1: the file is empty"),
        ("op,lbn,sectors\nR,0,-8\n", 'line 2, column sectors: "-8" is negative'),
        ("op,lbn,sectors\nR,0,8\nR,1950,8\n", "line 3, column lbn: sectors 1950 to 1957 lie past the end"),
        ("op,lbn,sectors,arrival_us\nR,0,8,9\nR,0,8,8\n", "line 3, column arrival_us: 8 is earlier than 9"),
        ("op,lbn,sectors,colour\nR,0,8,red\n", 'line 1: unknown column "colour"'),
    ],
)
def test_a_bad_file_is_one_line_with_line_and_column(
    memory: Path, tmp_path: Path, content: str, named: str
) -> None:
    requests = tmp_path / "requests.csv"
    requests.write_text(content)
    done = cli("simulate", memory, "--requests", requests)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{requests}, {named}" in done.stderr


@pytest.mark.parametrize(
    ("job", "named"),
    [
        (SimulationJob(), "--requests"),
        (SimulationJob(preset="randread"), "randread"),
        (SimulationJob(preset="randread-4k", count=0), "--count"),
        (SimulationJob(preset="randread-4k", count=1, virtual_s=1), "--duration"),
        (SimulationJob(preset="randread-4k", depth=0), "--depth"),
        (SimulationJob(preset="randread-4k", open=True), "--open"),
        (SimulationJob(preset="randread-4k", precondition="random:2"), "random:2"),
        (SimulationJob(requests=Path("none.csv")), "none.csv"),
    ],
)
def test_options_that_make_no_sense_are_named(job: SimulationJob, named: str) -> None:
    with pytest.raises(TierwiseError) as caught:
        simulate_job(profiles.load_profile("ram"), job)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(60)
def test_no_time_passes_on_a_device_that_answers_at_once() -> None:
    with pytest.raises(TierwiseError, match="--duration: the device answers at once"):
        simulate_job(profiles.load_profile("zero"), SimulationJob(preset="randread-4k", virtual_s=1))
    assert (
        simulate_job(profiles.load_profile("zero"), SimulationJob(preset="randread-4k", count=10)).count == 10
    )


def test_a_profile_of_another_kind_is_one_line(tmp_path: Path) -> None:
    tape = tmp_path / "tape.toml"
    tape.write_text(MEMORY.replace('"ram"', '"tape"'))
    done = cli("simulate", tape, "--preset", "randread-4k")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert 'kind = "tape"' in done.stderr


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="no measured drives in ../shared/golden/hdd")
def test_a_measured_drive_is_simulated_from_its_files(tmp_path: Path) -> None:
    """Imported and simulated by the command line: within the 3 % that the model must keep."""
    drive, profile = GOLDEN / "cheetah-9lp", tmp_path / "cheetah.toml"
    assert cli("import", drive / "geometry.json", drive / "seek.csv", "-o", profile).returncode == 0
    times = tmp_path / "times.csv"
    requests = drive / "requests.csv.gz"
    done = cli("simulate", profile, "--requests", requests, "--times", times, "--format", "json")
    compared = json.loads(done.stdout)["compared"]
    assert compared["demerit"] < 0.03
    with gzip.open(requests, "rt") as packed:
        measured = list(csv.DictReader(packed))
    with times.open() as plain:
        modelled = list(csv.DictReader(plain))
    assert [(row["op"], row["lbn"]) for row in measured] == [(row["op"], row["lbn"]) for row in modelled]
