"""The probe on this machine's own storage: what it measures, refuses and leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.host import ledger
from tierwise.host.clean import clean
from tierwise.probe import ProbeOptions, ProbeReport, median_rate_repeat, probe_device
from tierwise.probe.probe_samples import CRYSTALDISKMARK
from tierwise.report.device_report import probe_document
from tierwise.report.render import to_markdown
from tierwise.results import PatternResult

MIB = 1 << 20
QUICK = ProbeOptions(seconds=5, size_bytes=32 * MIB, repeats=2)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ProbeReport:
    directory = tmp_path_factory.mktemp("probed")
    (directory / "precious").write_text("mine")
    result = probe_device(directory, QUICK)
    assert [path.name for path in directory.iterdir()] == ["precious"]
    assert (directory / "precious").read_text() == "mine"
    return result


def test_every_line_is_measured_as_often_as_asked(report: ProbeReport) -> None:
    assert set(report.patterns) == set(CRYSTALDISKMARK.values())
    for name, results in report.patterns.items():
        assert len(results) == QUICK.repeats
        for result in results:
            kind, other = (result.read, result.write) if "read" in name else (result.write, result.read)
            assert kind is not None and kind.count == result.requests > 0 and other is None


def test_the_text_shows_the_median_latency_of_every_line(report: ProbeReport) -> None:
    shown = to_markdown(probe_document(report))
    for name, results in report.patterns.items():
        middle_result = median_rate_repeat(results)
        p50_us = (middle_result.read or middle_result.write).p50_us  # type: ignore[union-attr]
        assert f"{p50_us:,.{1 if p50_us < 100 else 0}f}" in shown, name
    assert f"flush: {report.flush.verdict}" in shown


def test_rates_and_latencies_agree(report: ProbeReport) -> None:
    """Little's law: rate × latency is the depth, less the time that handing over the next ones takes."""
    for name, results in report.patterns.items():
        depth = int(name.split("-q")[1].split("t")[0])
        rate_per_s = [result.rate_per_s * latency_us(result) / 1e6 for result in results]
        # Whoever hands over waits for a processor too.
        assert 0.5 * depth < max(rate_per_s) < 1.01 * depth, (name, rate_per_s)


def latency_us(pattern_result: PatternResult) -> float:
    latency = pattern_result.read or pattern_result.write
    assert latency is not None
    return latency.mean_us


def test_profile_is_accepted_and_names_its_measurements(report: ProbeReport, tmp_path: Path) -> None:
    assert report.profile is not None
    profile = profiles.parse_profile(report.profile, tmp_path / "fitted.toml")
    size_bytes = shutil.disk_usage(report.path).total
    assert profile.capacity_bytes == pytest.approx(size_bytes, rel=0.01), (
        "of the file system, not of the test file"
    )
    for key, source in profile.sources.items():
        assert source.startswith(("measured: tierwise device probe", "estimated: ")), key
    assert any("95 % interval" in source for source in profile.sources.values())


def test_both_engines_measure(tmp_path: Path) -> None:
    for engine in ("io_uring", "threads"):
        if engine == "io_uring" and _core.probe_engine() != engine:
            pytest.skip("this kernel gives no ring")
        target = _core.ProbeTarget.create(str(tmp_path / engine), 4 * MIB, engine)
        target.fill()
        measured = json.loads(target.measure("mixed70-4k-qd4", 0.1, 1))
        assert measured["read"]["count"] > measured["write"]["count"] > 0


def start_probe(directory: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tierwise",
        "device",
        "probe",
        str(directory),
        "--size",
        "32M",
        "--duration",
        "60s",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(directory.glob("*/probe")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return process


def test_ctrl_c_leaves_nothing(run_dir: Path, tmp_path: Path) -> None:
    process = start_probe(tmp_path)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    assert list(tmp_path.iterdir()) == [] and not ledger.entries()


def test_a_killed_probe_is_cleaned_up(run_dir: Path, tmp_path: Path) -> None:
    process = start_probe(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert len(list(tmp_path.iterdir())) == 1
    assert len(clean()) == 1
    assert list(tmp_path.iterdir()) == [] and not ledger.entries()
