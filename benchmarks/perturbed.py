"""Recordings made from others by perturbation: as many as a benchmark needs, each valid and different.

Time within each burst is stretched and compressed at random. Durations thus differ; the order of events,
the ends of the bursts and everything else stay.
"""

from __future__ import annotations

import json
import random
import shutil
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tierwise.recording import Recording

KNOTS = 50
"""Stretches of a burst with a pace of their own."""
PACES = (0.8, 1.25)
"""Least and greatest pace before they are scaled to the length of the burst."""


def perturbed(source: Path, to: Path, seed: int) -> None:
    """A recording like another, in which time passes at another pace in each stretch of a burst."""
    shutil.copytree(source, to)
    about = json.loads((to / "about.json").read_text("utf-8"))
    bursts = [(one["start_ns"], one["end_ns"]) for one in about["bursts"]]
    warp = _Warp(bursts, random.Random(seed))
    for file in to.glob("*.parquet"):
        table = parquet.read_table(file)
        for number, field in enumerate(table.schema):
            if field.name.endswith("_ns"):
                times = table[field.name].to_pylist()
                warped = [None if time_ns is None else warp(time_ns) for time_ns in times]
                table = table.set_column(number, field, pa.array(warped, field.type))
        parquet.write_table(table, file, compression="zstd")
        content = file.read_bytes()
        about["tables"][file.stem].update(size_bytes=len(content), crc32=zlib.crc32(content))
    (to / "about.json").write_text(json.dumps(about), "utf-8")
    Recording.open(to, whole=True)  # which raises if it is not valid


class _Warp:
    """A map of times onto times that keeps order and the ends of each burst."""

    def __init__(self, bursts: Sequence[tuple[int, int]], chance: random.Random) -> None:
        self.was: list[int] = []
        self.now: list[int] = []
        for start_ns, end_ns in bursts:
            steps = [chance.uniform(*PACES) for _ in range(KNOTS)]
            shares = [0.0, *accumulate(steps)]
            length = end_ns - start_ns
            self.was += [start_ns + length * knot // KNOTS for knot in range(KNOTS + 1)]
            self.now += [start_ns + int(length * share / shares[-1]) for share in shares[:-1]] + [end_ns]

    def __call__(self, time_ns: int) -> int:
        """Where a time comes to lie; outside of bursts it stays."""
        left = bisect_right(self.was, time_ns) - 1
        if left < 0 or left + 1 >= len(self.was) or self.was[left + 1] == self.was[left]:
            return time_ns
        done, of = time_ns - self.was[left], self.was[left + 1] - self.was[left]
        return self.now[left] + done * (self.now[left + 1] - self.now[left]) // of
