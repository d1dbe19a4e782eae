"""Recordings made from others by perturbation: as many as a benchmark needs, each valid and different.

Time within each burst is stretched and compressed at random. Durations thus differ; the order of events,
the ends of the bursts and everything else stay.
"""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from tierwise.recording import Recording

Times = NDArray[np.int64]

KNOTS = 50
"""Stretches of a burst with a pace of their own."""
PACES = (0.8, 1.25)
"""Least and greatest pace before they are scaled to the length of the burst."""


def perturbed(source: Path, to: Path, seed: int) -> None:
    """A recording like another, in which time passes at another pace in each stretch of a burst."""
    shutil.copytree(source, to)
    about = json.loads((to / "about.json").read_text("utf-8"))
    bursts = [(burst["start_ns"], burst["end_ns"]) for burst in about["bursts"]]
    warp = _Warp(bursts, random.Random(seed))
    for file in to.glob("*.parquet"):
        table = parquet.read_table(file)
        for number, field in enumerate(table.schema):
            if field.name.endswith("_ns"):
                times = table[field.name].combine_chunks()
                warped = warp(times.fill_null(0).cast(pa.int64()).to_numpy())
                column = pa.array(warped, pa.int64(), mask=times.is_null().to_numpy(zero_copy_only=False))
                table = table.set_column(number, field, column.cast(field.type))
        parquet.write_table(table, file, compression="zstd")
        content = file.read_bytes()
        about["tables"][file.stem].update(size_bytes=len(content), crc32=zlib.crc32(content))
    (to / "about.json").write_text(json.dumps(about), "utf-8")
    Recording.open(to, whole=True)  # which raises if it is not valid


class _Warp:
    """A map of times onto times that keeps order and the ends of each burst."""

    def __init__(self, bursts: Sequence[tuple[int, int]], chance: random.Random) -> None:
        was, now = [], []
        for start_ns, end_ns in bursts:
            steps = [chance.uniform(*PACES) for _ in range(KNOTS)]
            shares = [0.0, *accumulate(steps)]
            length = end_ns - start_ns
            was += [start_ns + length * knot // KNOTS for knot in range(KNOTS + 1)]
            now += [start_ns + int(length * share / shares[-1]) for share in shares[:-1]] + [end_ns]
        self._was, self._now = np.array(was, np.int64), np.array(now, np.int64)

    def __call__(self, times_ns: Times) -> Times:
        """Where times come to lie; outside of bursts they stay."""
        left = np.clip(np.searchsorted(self._was, times_ns, side="right") - 1, 0, len(self._was) - 2)
        before, of = self._was[left], self._was[left + 1] - self._was[left]
        inside = (times_ns >= before) & (times_ns < before + of)
        gone = (times_ns - before) * (self._now[left + 1] - self._now[left]) // np.maximum(of, 1)
        return np.where(inside, self._now[left] + gone, times_ns)
