"""Bars of recording: what it costs a busy PostgreSQL, how much it writes, and that it loses no event.

``python benchmarks/record_cost.py [--blocks N] [--seconds S]``. pgbench's TPC-B runs with 10 clients on a
server whose files are in memory, so that the processors are the limit and every event costs. A block has four
slots: without a recorder (first and last by turns), and in random order with a recorder that is attached but
idle, with one that takes bursts at the default duty and discards them, and with a recording. Each is compared
with its block's slot without a recorder. Attaching and the final decoding are in no slot; their times are
printed separately. Then processes that only make system calls are recorded all the time. Exit status 1 if a
bar is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise.capture.record import Session, record_running
from tierwise.capture.schedule import Schedule
from tierwise.capture.target import Target, load, of_pid
from tierwise.host import cpu, ledger
from tierwise.lab import engines
from tierwise.lab.engines.postgres.binaries import embedded
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.predict.estimates import estimate

COST_BAR = 0.03
SIZE_BAR_MB_PER_MIN = 60.0
RATE_BAR_PER_S = 300_000
CLIENTS = 10
SETTLE_S = 2.0
MEMORY = Path("/dev/shm")

CALLS = "import os\nf = os.open('/dev/zero', 0)\nwhile True: os.read(f, 1)"

ALONE = "without"
RECORDED = "recorded"


@dataclass
class Progress:
    """pgbench's transactions, from its progress report every second."""

    at_s: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)

    def tell(self, at_s: float, rate_per_s: float) -> None:
        """Add a line: the rate since the previous one."""
        since_s = at_s - self.at_s[-1] if self.at_s else 0.0
        self.done.append((self.done[-1] if self.done else 0.0) + rate_per_s * since_s)
        self.at_s.append(at_s)

    def between(self, start_s: float, end_s: float) -> float:
        """Transactions between two times; both must lie between lines."""
        return self._until(end_s) - self._until(start_s)

    def _until(self, at_s: float) -> float:
        after = next(index for index, told_s in enumerate(self.at_s) if told_s >= at_s)
        (a_s, b_s), (a, b) = self.at_s[after - 1 : after + 1], self.done[after - 1 : after + 1]
        return a + (b - a) * (at_s - a_s) / (b_s - a_s)


@dataclass
class Took:
    """Time and CPU time of this process: absolute, or since an earlier reading."""

    wall_s: float = field(default_factory=time.monotonic)
    cpu_s: float = field(default_factory=time.process_time)

    def since(self) -> Took:
        """Time and CPU time since this reading."""
        now = Took()
        return Took(now.wall_s - self.wall_s, now.cpu_s - self.cpu_s)


@dataclass(frozen=True)
class Slot:
    """A stretch of time of one kind."""

    block: int
    kind: str
    start_s: float
    end_s: float
    cpu_s: float
    """CPU time of server, clients and this process."""


@dataclass
class Made:
    """A finished recording: its metadata, its size, and the cost before and after its time."""

    about: dict[str, Any]
    size_bytes: int
    attaching: Took
    decoding: Took


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a slot")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB", "autovacuum": "off"}
    server = engines.create("postgres", settings)
    with ledger.directory("record-cost", MEMORY, 0o711) as place, server as engine:
        assert isinstance(engine, PostgresEngine)
        engine.init({role: _made(place / role.value) for role in engine.roles})
        engine.start()
        missed = _judge_cost(engine, options)
    return int(missed + _judge_losses() > 0)


def _judge_cost(engine: PostgresEngine, options: argparse.Namespace) -> int:
    _pgbench(engine, "-i", "-q", "-s", str(options.scale)).wait()
    chance = random.Random(options.seed)
    slots: list[Slot] = []
    made: list[Made] = []
    with _running(engine) as (progress, pgbench):
        time.sleep(5)
        for block in range(options.blocks):

            def slot(kind: str, action: Callable[[float], None], block: int = block) -> None:
                time.sleep(SETTLE_S)
                start_s, cpu_s = time.time(), _cpu_s(engine, pgbench)
                action(options.seconds)
                slots.append(Slot(block, kind, start_s, time.time(), _cpu_s(engine, pgbench) - cpu_s))

            if block % 2 == 0:
                slot(ALONE, time.sleep)
            made.append(_with_recorder(engine, slot, chance))
            if block % 2 == 1:
                slot(ALONE, time.sleep)
        time.sleep(2)
    cost_high = _told(slots, progress)
    _told_of_recordings(made)
    abouts = [recording.about for recording in made]
    events = sum(about["losses"]["recorded_events"] for about in abouts)
    lost = sum(about["losses"]["lost_events"] for about in abouts)
    traced_s = sum(burst["end_ns"] - burst["start_ns"] for about in abouts for burst in about["bursts"]) / 1e9
    size = statistics.median(recording.size_bytes for recording in made) / 1e6 / options.seconds * 60
    print(f"{events / traced_s:,.0f} events/s within bursts, {lost} lost")
    print(f"{size:.1f} MB a minute; bar {SIZE_BAR_MB_PER_MIN:g}")
    return int(cost_high > COST_BAR) + int(lost > 0) + int(size > SIZE_BAR_MB_PER_MIN)


class _Discarding(Session):
    """Takes bursts like a recording without decoding them; they are discarded at the end."""

    def end_burst(self) -> None:
        """Take no more events until the next burst."""
        self._recorder.end(0.0)


def _with_recorder(
    engine: PostgresEngine, slot: Callable[[str, Callable[[float], None]], None], chance: random.Random
) -> Made:
    """The slots of a block with a recorder; return the finished recording."""
    kinds = ["attached", "thrown away", RECORDED]
    chance.shuffle(kinds)
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            before, out = Took(), Path(folder) / kind
            session_type = Session if kind == RECORDED else _Discarding
            with session_type(of_pid(engine.server_pid or 0), out, Schedule(), lambda _: None) as session:
                attaching = before.since()
                slot(kind, time.sleep if kind == "attached" else _run(session))
                if kind == RECORDED:
                    before = Took()
                    about = session.finish()
                    size_bytes = sum(path.stat().st_size for path in out.iterdir())
                    made = Made(about, size_bytes, attaching, before.since())
    return made


def _run(session: Session) -> Callable[[float], None]:
    return lambda seconds: session.run(seconds=seconds)


def _told(slots: list[Slot], progress: Progress) -> float:
    """Print the cost of each kind over the slot without a recorder; return a recording's upper end."""
    by_block: dict[int, dict[str, tuple[float, float]]] = {}
    for slot in slots:
        done = progress.between(slot.start_s, slot.end_s)
        figures = done / (slot.end_s - slot.start_s), slot.cpu_s / done
        by_block.setdefault(slot.block, {})[slot.kind] = figures
    rate, cpu_s = (statistics.median(block[ALONE][at] for block in by_block.values()) for at in (0, 1))
    print(f"without a recorder: {rate:,.0f} transactions/s, {cpu_s * 1e6:.0f} µs of the processor each")
    recorded_high = 0.0
    for kind in ("attached", "thrown away", RECORDED):
        ratios = [[block[kind][at] / block[ALONE][at] for block in by_block.values()] for at in (0, 1)]
        low, middle, high = _cost([1 / ratio for ratio in ratios[0]])
        cpu_low, cpu, cpu_high = _cost(ratios[1])
        print(
            f"{kind:12} cost by throughput {middle:5.1%} (95 %: {low:.1%} to {high:.1%}), "
            f"by processor time {cpu:5.1%} ({cpu_low:.1%} to {cpu_high:.1%}), {len(by_block)} pairs"
        )
        recorded_high = high
    print(f"bar: {COST_BAR:.0%} of throughput for a recording, with all of its interval")
    return recorded_high


def _cost(ratios: list[float]) -> tuple[float, float, float]:
    """Geometric mean of ratios less one, with the ends of its 95 % interval."""
    cost = estimate(ratios)
    assert cost is not None
    return cost.low - 1, cost.value - 1, cost.high - 1


def _told_of_recordings(made: list[Made]) -> None:
    for what in ("attaching", "decoding"):
        took = [getattr(recording, what) for recording in made]
        wall_s, own_s = (
            statistics.median(getattr(sample, name) for sample in took) for name in ("wall_s", "cpu_s")
        )
        print(f"{what}: {wall_s:.2f} s, once; {own_s:.2f} s of processor time")


def _cpu_s(engine: PostgresEngine, pgbench: subprocess.Popen[str]) -> float:
    """Processor time of the server, its clients and this process, which records."""
    parts = (cpu.tree_cpu_s(engine.server_pid or 0), cpu.process_cpu_s(pgbench.pid), time.process_time())
    return sum(part or 0.0 for part in parts)


def _judge_losses() -> int:
    """Record system calls at the maximum rate of the machine's cores, and check for losses."""
    command = [sys.executable, "-c", CALLS]
    callers = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        rules = load("sqlite")
        target = Target(lambda: [caller.pid for caller in callers], rules)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "recording"
            recorded = record_running(target, out, Schedule(5, duty=1.0), lambda _: None)
    finally:
        for caller in callers:
            caller.kill()
            caller.wait()
    burst, losses = recorded["bursts"][0], recorded["losses"]
    rate = (losses["recorded_events"] + losses["lost_events"]) / (burst["end_ns"] - burst["start_ns"]) * 1e9
    print(f"{rate:,.0f} events/s (bar {RATE_BAR_PER_S:,}): {losses['lost_events']} lost")
    return int(losses["lost_events"] > 0 or rate < RATE_BAR_PER_S)


@contextmanager
def _running(engine: PostgresEngine) -> Iterator[tuple[Progress, subprocess.Popen[str]]]:
    """pgbench, until the block ends."""
    progress = Progress()
    process = _pgbench(
        engine, "-n", f"-c{CLIENTS}", "-j2", "-Mprepared", "-T86400", "-P1", "--progress-timestamp"
    )

    def listen() -> None:
        for line in process.stderr or ():
            words = line.split()
            if words[:1] == ["progress:"]:
                progress.tell(float(words[1]), float(words[3]))

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield progress, process
    finally:
        process.kill()
        process.wait()


def _pgbench(engine: PostgresEngine, *arguments: str) -> subprocess.Popen[str]:
    address = dict(word.split("=", 1) for word in shlex.split(engine.dsn()))
    environment = os.environ | {f"PG{k.upper()}": value for k, value in address.items() if k != "dbname"}
    environment["PGDATABASE"] = address["dbname"]
    return subprocess.Popen(
        [str(embedded().bin / "pgbench"), *arguments], env=environment, stderr=subprocess.PIPE, text=True
    )


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
