"""What a machine attains of an emulated device, and the results that the emulation decided."""

from __future__ import annotations

import pytest

from support.results_factory import INFO, latency, study_runs
from tierwise.host.disk.disk import DiskStats, PartitionStats
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.report.device_report import attainable_rate_blocks, slower_depths
from tierwise.report.document import Text
from tierwise.results import AttainableRate, DeviceInfo, RunResult

FASTER = AttainableRate(op="read", depth=1, model_per_s=10_000, here_per_s=9_500)
READS = AttainableRate(op="read", depth=4, model_per_s=40_000, here_per_s=20_000)
WRITES = AttainableRate(op="write", depth=4, model_per_s=200_000, here_per_s=50_000)


def test_depths_at_which_this_machine_is_too_slow_are_named() -> None:
    sentence = slower_depths("ssd-sata-dc", [FASTER, READS, WRITES])
    assert sentence is not None
    assert "random reads a second 20 000 of 40 000 at depth 4; random writes a second 50 000 of 200 000" in (
        sentence.replace("\N{NARROW NO-BREAK SPACE}", " ").replace("\N{NO-BREAK SPACE}", " ")
    )
    assert "9 500" not in sentence
    assert slower_depths("ssd-sata-dc", [FASTER]) is None


def test_a_device_at_its_model_s_pace_has_rates_and_no_warning() -> None:
    assert attainable_rate_blocks([]) == []
    assert not any(isinstance(block, Text) for block in attainable_rate_blocks([FASTER]))
    assert isinstance(attainable_rate_blocks([FASTER, READS])[-1], Text)


def stats(mean_us: float, depth: float) -> DiskStats:
    """A thousand writes in a second in which the disk is always busy."""
    part = PartitionStats(
        name="log", device="", mount="", file_system="ext4", size_bytes=0, reads=0, writes=1000, flushes=0,
        discards=0, read_bytes=0, write_bytes=0, busy_s=1.0, queue_depth_mean=depth, queue_depth_max=1,
        read_latency=None, flush_latency=None,
        write_latency=latency(mean_us, 1000).model_copy(update={"mean_us": mean_us}),
    )  # fmt: skip
    return DiskStats(
        name="disk", profile="p", kind="ssd", server_pid=1, owner_pid=1, elapsed_s=1.0, cpu_s=0.0,
        path_us=8.0, transport="fuse",
        queue_depth_mean=depth, queue_depth_max=0, deadline_overrun=None, errors=0, unflushed_bytes=0,
        write_amplification=None, warnings=[], attainable=[FASTER, READS, WRITES], partitions={"log": part},
    )  # fmt: skip


def test_the_path_s_share_of_a_run_is_that_of_its_depth() -> None:
    # At depth 1 a read takes 5.3 us longer than by the model, at depth 4 it takes 100.
    assert stats(100.0, 1.0).path_share == pytest.approx(5.263 / 105.263, rel=1e-3)
    assert stats(100.0, 4.0).path_share == pytest.approx(0.5)
    assert stats(100.0, 4.0).model_copy(update={"attainable": []}).path_share is None


def slowed(run: RunResult) -> RunResult:
    """The run with a path that took a third of the time of requests to the SSD."""
    update = {"attainable": [READS, WRITES], "path_share": 0.34}
    devices: list[DeviceInfo] = [
        device.model_copy(update=update) if device.name == "ssd" else device for device in run.devices
    ]
    return run.model_copy(update={"devices": devices})


def test_results_that_the_emulation_decided_are_marked() -> None:
    quiet, marked = (
        build_study_answer(runs, INFO).comparisons[0].words.caveats
        for runs in (study_runs(), [slowed(run) for run in study_runs()])
    )
    (caveat,) = set(marked) - set(quiet)
    assert caveat.startswith("Under log-ssd, all-ssd") and "was the path of the emulation" in caveat
    assert "ssd-dram-fc" in caveat
