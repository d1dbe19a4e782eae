"""Bar of the probe: CrystalDiskMark's lines within 10 % of fio on the same file.

Run with fio installed: ``python benchmarks/probe_fio.py [--directory DIR] [--repeats N]``. Both measure
one file of the probe's own, with direct I/O, one thread, a ring, and random places that may repeat; a
sample of one is followed by a sample of the other, and which goes first alternates. What counts is the
median of the ratios of pairs, since drift of the machine meets both of a pair alike. A pair during which
other programs used more than a tenth of a core is taken again, a few times; the table says how many pairs
were not quiet. Exit status 1 if a line is off by more than 10 %.
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
from dataclasses import dataclass
from pathlib import Path

import psutil

from tierwise import _core
from tierwise.probe.probe_samples import CRYSTALDISKMARK, wait_until_device_settles
from tierwise.results.measurements import PatternResult

BAR = 0.10
QUIET_CORES = 0.1
TRIES = 4
SIZE_BYTES = 1 << 30
FIO_SIZES = {"SEQ1M": "1m", "RND4K": "4k"}


@dataclass(frozen=True)
class Pair:
    """One sample of each, in MB/s, and the CPU use of other programs meanwhile, in cores."""

    ours: float
    theirs: float
    foreign_cores: float

    @property
    def ratio(self) -> float:
        """Ours over fio's."""
        return self.ours / self.theirs


def fio_mb_per_s(file: Path, title: str, seconds: float) -> float:
    """One sample of fio with the settings of a line such as ``RND4K Q32T1 read``."""
    kind, queue, direction = title.split()
    depth = queue.split("T")[0].removeprefix("Q")
    mode = f"rand{direction}" if kind.startswith("RND") else direction
    command = [
        *("fio", "--name=probe", f"--filename={file}", f"--size={SIZE_BYTES}", "--direct=1"),
        *("--ioengine=io_uring", f"--rw={mode}", f"--bs={FIO_SIZES[kind]}", f"--iodepth={depth}"),
        *(
            "--norandommap",
            "--randrepeat=0",
            "--time_based",
            f"--runtime={round(seconds * 1000)}ms",
            "--output-format=json",
        ),
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(output)["jobs"][0][direction]["bw_bytes"]) / 1e6


def our_mb_per_s(target: _core.ProbeTarget, title: str, seconds: float) -> float:
    """One sample of the probe."""
    measured = target.measure(CRYSTALDISKMARK[title], seconds, random.getrandbits(32))
    return PatternResult.model_validate_json(measured).mb_per_s


def foreign_s() -> float:
    """User time of all processors less that of this process and its children."""
    ours = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    times = psutil.cpu_times()
    return float(times.user + times.nice - ours)


def quiet_pair(target: _core.ProbeTarget, file: Path, title: str, seconds: float, ours_first: bool) -> Pair:
    """The quietest pair, repeated until the machine is quiet or the attempts are used up."""
    pairs = []
    for _ in range(TRIES):
        pairs.append(pair(target, file, title, seconds, ours_first))
        if pairs[-1].foreign_cores <= QUIET_CORES:
            break
        time.sleep(1)
    return min(pairs, key=lambda pair: pair.foreign_cores)


def pair(target: _core.ProbeTarget, file: Path, title: str, seconds: float, ours_first: bool) -> Pair:
    """One sample of each."""
    wait_until_device_settles(target, random.Random(0))
    before_s, start = foreign_s(), time.monotonic()
    if ours_first:
        ours = our_mb_per_s(target, title, seconds)
        theirs = fio_mb_per_s(file, title, seconds)
    else:
        theirs = fio_mb_per_s(file, title, seconds)
        ours = our_mb_per_s(target, title, seconds)
    return Pair(ours, theirs, (foreign_s() - before_s) / (time.monotonic() - start))


def measure(directory: Path, repeats: int, seconds: float) -> dict[str, list[Pair]]:
    """All pairs of all lines, interleaved."""
    pairs: dict[str, list[Pair]] = {title: [] for title in CRYSTALDISKMARK}
    with tempfile.TemporaryDirectory(dir=directory, prefix="tierwise-bench-") as folder:
        file = Path(folder) / "probe"
        target = _core.ProbeTarget.create(str(file), SIZE_BYTES, "io_uring")
        target.fill()
        for repeat in range(repeats):
            print(f"repeat {repeat + 1} of {repeats}", file=sys.stderr)
            for title, taken in pairs.items():
                taken.append(quiet_pair(target, file, title, seconds, ours_first=repeat % 2 == 0))
    return pairs


def main() -> None:
    """Measure, print the table, exit with 1 if a line is off."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=Path.cwd())
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    pairs = measure(options.directory, options.repeats, options.seconds)
    print(
        f"\nprobe against fio on Linux {platform.release()}, {options.repeats} pairs of {options.seconds} s"
    )
    failed = False
    for title, taken in pairs.items():
        ratios = sorted(sample.ratio for sample in taken)
        ratio = statistics.median(ratios)
        missed = abs(ratio - 1) > BAR
        failed |= missed
        ours, theirs = (
            statistics.median(getattr(sample, who) for sample in taken) for who in ("ours", "theirs")
        )
        print(
            f"{title:18} {ours:9,.1f} MB/s   fio {theirs:9,.1f} MB/s   ratio {ratio:.3f} "
            f"({ratios[0]:.2f}–{ratios[-1]:.2f})   {'FAIL' if missed else 'pass'}"
        )
    foreign = [sample.foreign_cores for taken in pairs.values() for sample in taken]
    noisy = sum(cores > QUIET_CORES for cores in foreign)
    print(f"other programs used {statistics.median(foreign):.2f} cores (median), {max(foreign):.2f} (most);")
    print(f"{noisy} of {len(foreign)} pairs were not quiet")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
