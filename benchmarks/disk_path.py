"""Bars of the live disk, with fio: what the path adds, and how its rates compare with the model's by depth.

Run as root with fio installed: ``python benchmarks/disk_path.py [--repeats N] [--profiles NAME …]``. Samples
are taken in random order, so that drift of the machine meets all devices alike. Latencies are those of the
best sample; rates are medians, with the least and the greatest. A sample during which other programs used
more than a tenth of a core is taken again, a few times; the last line says how many stayed disturbed. Exit
status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import get_args

import psutil

from tierwise.device_models import profiles
from tierwise.device_models.device_simulation import SimulationJob, simulate_job
from tierwise.host import block_devices, mounts
from tierwise.host.disk.disk import WHOLE, EmulatedDisk, Partition
from tierwise.host.disk.disk_config import Transport

SIZE_BYTES = 1 << 28
SAMPLE_S = 1.0
QUIET_CORES = 0.1
TRIES = 4
DEPTHS = (1, 2, 4, 8, 16, 32)
PROFILES = ["ssd-sata-dc", "ssd-nvme-dc", "ssd-nvme-consumer", "ssd-optane", "volume-aws-gp3"]
LARGEST_PER_S = 150_000
"""Rates of models above this are not demanded."""


@dataclass
class Sample:
    """One run of fio; processor time of the server, and the foreign CPU use meanwhile, in cores."""

    p50_us: float
    per_s: float
    server_us: float
    overrun_p99_us: float
    foreign_cores: float


@dataclass
class Device:
    """A block device to measure; ``disk`` is its emulation, if it is emulated."""

    name: str
    transport: str
    path: Path
    disk: EmulatedDisk | None = None
    samples: dict[tuple[str, int], list[Sample]] = field(default_factory=dict)

    def least_p50_us(self, op: str) -> float:
        """Median latency of the best sample at depth 1: other load on the machine can only add latency."""
        return min(sample.p50_us for sample in self.samples[op, 1])

    def take(self, op: str, depth: int) -> None:
        """The quietest sample, repeated until the machine is quiet or the attempts are used up."""
        tries: list[Sample] = []
        while len(tries) < TRIES and not (tries and tries[-1].foreign_cores <= QUIET_CORES):
            tries.append(_sample(self, op, depth))
        self.samples.setdefault((op, depth), []).append(min(tries, key=lambda one: one.foreign_cores))


def _sample(device: Device, op: str, depth: int) -> Sample:
    engine = ["--ioengine=psync"] if depth == 1 else ["--ioengine=libaio", f"--iodepth={depth}"]
    common = ["--direct=1", "--bs=4k", "--time_based", f"--runtime={SAMPLE_S}", f"--size={SIZE_BYTES}"]
    command = ["fio", "--name=path", f"--filename={device.path}", *common, f"--rw=rand{op}", *engine]
    if device.disk:
        device.disk.reset_stats()
    before, start = _foreign_user_s(device), time.monotonic()
    output = subprocess.run([*command, "--output-format=json"], capture_output=True, text=True, check=True)
    elapsed_s = time.monotonic() - start
    foreign_cores = (_foreign_user_s(device) - before) / elapsed_s
    result = json.loads(output.stdout)["jobs"][0][op]
    stats = device.disk.stats() if device.disk else None
    return Sample(
        p50_us=result["clat_ns"]["percentile"]["50.000000"] / 1e3,
        per_s=result["iops"],
        server_us=1e6 * stats.cpu_s / max(result["total_ios"], 1) if stats else 0.0,
        overrun_p99_us=stats.deadline_overrun.p99_us if stats and stats.deadline_overrun else 0.0,
        foreign_cores=foreign_cores,
    )


def _foreign_user_s(device: Device) -> float:
    """User time of all processors less that of fio and the disk's server."""
    ours = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if device.disk:
        ours += psutil.Process(device.disk.stats().server_pid).cpu_times().user
    times = psutil.cpu_times()
    return times.user + times.nice - ours


@contextmanager
def emulated(name: str, profile: profiles.DeviceProfile, transport: Transport) -> Iterator[Device]:
    """An emulated disk whose block device is free to be written."""
    with tempfile.TemporaryDirectory() as directory:
        point = Path(directory) / "mount"
        parts = [Partition(WHOLE, SIZE_BYTES)]
        with EmulatedDisk.up(f"{name}-{transport}"[-32:], profile, parts, point, transport=transport) as disk:
            mounts.unmount(point)
            yield Device(name, transport, Path(disk.stats().partitions[WHOLE].device), disk)


@contextmanager
def on_tmpfs() -> Iterator[Device]:
    """A loop device on a file in memory: the path without FUSE and without a server."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        for _ in range(SIZE_BYTES >> 20):
            file.write(bytes(1 << 20))
        file.flush()
        device = block_devices.attach_loop(Path(file.name))
        try:
            reported = block_devices.ReportedCaches(rotational=False, write_cache=False)
            block_devices.set_queue_attributes(device, reported)
            yield Device("tmpfs", "", device)
        finally:
            block_devices.detach_loop(device)


def measure(names: list[str], transports: list[Transport], repeats: int) -> list[Device]:
    """All samples of all devices, in random order within each repeat."""
    order = random.Random(1)
    with ExitStack() as stack:
        devices = [stack.enter_context(on_tmpfs())]
        devices += [
            stack.enter_context(emulated(name, profiles.load_profile(name), transport))
            for name, transport in product(["zero", *names], transports)
        ]
        jobs = [
            (device, op, depth)
            for device, op, depth in product(devices, ("read", "write"), DEPTHS)
            if device.name in names or depth in (1, 32)
        ]
        for number in range(repeats):
            print(f"repeat {number + 1} of {repeats}", file=sys.stderr)
            order.shuffle(jobs)
            for device, op, depth in jobs:
                device.take(op, depth)
    return devices


def model_per_s(name: str, op: str, depth: int) -> float:
    """Rate of the model at a depth, on virtual time."""
    preset = f"rand{op}-4k" + (f"-qd{depth}" if depth > 1 else "")
    return simulate_job(profiles.load_profile(name), SimulationJob(preset=preset, count=20_000)).iops


def report(devices: list[Device]) -> bool:
    """Print all tables; give whether every bar is met."""
    tmpfs, met = devices[0], True
    print(f"\nlive disk on Linux {platform.release()}, {psutil.cpu_count()} cores\n")
    for device in devices[1:]:
        if device.name == "zero":
            for op in ("read", "write"):
                added_us = device.least_p50_us(op) - tmpfs.least_p50_us(op)
                deep = device.samples[op, 32]
                per_s = statistics.median(sample.per_s for sample in deep)
                server_us = statistics.median(sample.server_us for sample in deep)
                met &= added_us <= 8
                print(
                    f"{device.transport:<14} {op:<5}  added latency (p50) {added_us:5.1f} µs, bar 8; "
                    f"at depth 32 {per_s:9,.0f}/s, {server_us:4.1f} µs of processor time each"
                )
    print(
        f"\n{'profile':<20}{'transport':<15}{'op':<6}{'depth':>5}{'model /s':>11}{'live /s':>11}"
        f"{'ratio':>7} {'least to most':<14}{'server µs':>10}{'overrun p99 µs':>16}"
    )
    for device in devices[1:]:
        for (op, depth), samples in sorted(device.samples.items()):
            if device.name == "zero":
                continue
            model = model_per_s(device.name, op, depth)
            ratios = sorted(sample.per_s / model for sample in samples)
            ratio = statistics.median(ratios)
            kept = model > LARGEST_PER_S or abs(ratio - 1) <= 0.1
            met &= kept
            print(
                f"{device.name:<20}{device.transport:<15}{op:<6}{depth:>5}{model:>11,.0f}"
                f"{statistics.median(sample.per_s for sample in samples):>11,.0f}{ratio:>7.2f} "
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}  "
                f"{statistics.median(sample.server_us for sample in samples):>10.1f}"
                f"{statistics.median(sample.overrun_p99_us for sample in samples):>16.1f}"
                f"{'' if kept else '  MISSED'}"
            )
    every = [sample for device in devices for samples in device.samples.values() for sample in samples]
    noisy = sum(sample.foreign_cores > QUIET_CORES for sample in every)
    print(f"\n{noisy} of {len(every)} samples were not quiet (other programs used a tenth of a core)")
    return met


def main() -> None:
    """Measure, print the tables, exit with 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profiles", nargs="*", default=PROFILES, metavar="NAME")
    here = [way for way in get_args(Transport) if way != "ublk" or Path("/dev/ublk-control").exists()]
    parser.add_argument("--transports", nargs="*", default=here, choices=get_args(Transport))
    asked = parser.parse_args()
    sys.exit(0 if report(measure(asked.profiles, asked.transports, asked.repeats)) else 1)


if __name__ == "__main__":
    main()
