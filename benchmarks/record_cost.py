"""Bars of recording: what it costs a busy PostgreSQL, how much it writes, and that it loses no event.

``python benchmarks/record_cost.py [--rounds N] [--seconds S] [--alone S]``. pgbench's TPC-B runs with 10
clients on a server whose files are in memory, so that the processors are the limit and every event costs.
Rounds with recording at the default duty, as long as a recording is by default, and rounds without take
turns; each with is compared with those beside it. A round contains the attaching, but not the decoding of
what is left in the end; what each takes is told besides. Then processes that do nothing but system calls are
recorded all the time. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise import engines
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.host import cpu, ledger
from tierwise.record import Schedule, Session, Target, of_pid, record_running
from tierwise.record import rules as rule_files
from tierwise.record.rates import Span, cost_of

COST_BAR = 0.03
SIZE_BAR_MB_PER_MIN = 60.0
RATE_BAR_PER_S = 300_000
CLIENTS = 10
MEMORY = Path("/dev/shm")

CALLS = "import os\nf = os.open('/dev/zero', 0)\nwhile True: os.read(f, 1)"


@dataclass
class Progress:
    """pgbench's transactions, counted every second as it tells them."""

    lines: list[tuple[float, float]]

    def between(self, start_s: float, end_s: float) -> list[float]:
        """Rates of the seconds that lie between two times."""
        return [rate for at_s, rate in self.lines if start_s + 1 <= at_s <= end_s]


@dataclass
class Took:
    """Time, and processor time of this process: by the clocks, or since an earlier reading."""

    wall_s: float = field(default_factory=time.monotonic)
    cpu_s: float = field(default_factory=time.process_time)

    def since(self) -> Took:
        """What passed since this reading."""
        now = Took()
        return Took(now.wall_s - self.wall_s, now.cpu_s - self.cpu_s)


@dataclass
class Made:
    """A finished recording: what it says of itself, its size, and what it took before and after its time."""

    about: dict[str, Any]
    size_bytes: int
    attaching: Took
    decoding: Took


@dataclass
class Recording:
    """A recording whose time is over."""

    session: Session
    out: Path
    attaching: Took

    def finish(self) -> Made:
        """Decode what is left."""
        before = Took()
        about = self.session.finish()
        size_bytes = sum(path.stat().st_size for path in self.out.iterdir())
        return Made(about, size_bytes, self.attaching, before.since())


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=Schedule().seconds)
    parser.add_argument("--alone", type=float, default=30, metavar="SECONDS")
    parser.add_argument("--scale", type=int, default=20)
    options = parser.parse_args()
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB", "autovacuum": "off"}
    with ledger.directory("record-cost", MEMORY) as place, engines.create("postgres", settings) as engine:
        assert isinstance(engine, PostgresEngine)
        engine.init({role: _made(place / role.value) for role in engine.roles})
        engine.start()
        missed = _judge_cost(engine, options)
    return int(missed + _judge_losses() > 0)


def _judge_cost(engine: PostgresEngine, options: argparse.Namespace) -> int:
    _pgbench(engine, "-i", "-q", "-s", str(options.scale)).wait()
    spans: list[Span] = []
    work: list[Span] = []
    made: list[Made] = []
    with _running(engine) as (progress, pgbench):
        time.sleep(5)
        for number in range(2 * options.rounds + 1):
            recorded = number % 2 == 1
            start_s, cpu_s = time.time(), _cpu_s(engine, pgbench)
            seconds = options.seconds if recorded else options.alone
            with _round(engine, seconds, recorded) as recording:
                elapsed_s = time.time() - start_s
                rates = progress.between(start_s, start_s + elapsed_s)
                done = round(statistics.fmean(rates) * elapsed_s)
                spans.append(Span(recorded, elapsed_s, done))
                work.append(Span(recorded, _cpu_s(engine, pgbench) - cpu_s, done))
                if recording is not None:
                    made.append(recording.finish())
            kind = "recorded" if recorded else "alone"
            print(
                f"  {kind:8} {spans[-1].rate_per_s:8.0f} tps, {1e6 / work[-1].rate_per_s:6.0f} µs of CPU each"
            )
    cost = _told("throughput", spans)
    _told("processor time", work)
    for what in ("attaching", "decoding"):
        took = [getattr(one, what) for one in made]
        wall_s, own_s = (
            statistics.median(getattr(one, name) for one in took) for name in ("wall_s", "cpu_s")
        )
        print(f"{what}: {wall_s:.2f} s, once; {own_s:.2f} s of processor time")
    told = [one.about for one in made]
    events = sum(one["losses"]["recorded_events"] for one in told)
    lost = sum(one["losses"]["lost_events"] for one in told)
    traced_s = sum(burst["end_ns"] - burst["start_ns"] for one in told for burst in one["bursts"]) / 1e9
    size = statistics.median(one.size_bytes for one in made) / 1e6 / options.seconds * 60
    print(f"{events / traced_s:,.0f} events/s within bursts, {lost} lost")
    print(f"{size:.1f} MB a minute; bar {SIZE_BAR_MB_PER_MIN:g}")
    return (cost > COST_BAR) + (lost > 0) + (size > SIZE_BAR_MB_PER_MIN)


def _told(what: str, spans: list[Span]) -> float:
    """Print the cost by rounds side by side; processor time is less shaken by others on the machine."""
    cost = cost_of(spans, 0.0)
    assert cost is not None
    low, middle, high = (1 - cost[key] for key in ("rate_ratio_high", "rate_ratio", "rate_ratio_low"))
    print(f"cost by {what}: {middle:.1%} (95 %: {low:.1%} to {high:.1%}); bar {COST_BAR:.0%}", flush=True)
    return middle


def _cpu_s(engine: PostgresEngine, pgbench: subprocess.Popen[str]) -> float:
    """Processor time of the server, its clients and, while it records, this process."""
    parts = (cpu.tree_cpu_s(engine.server_pid or 0), cpu.process_cpu_s(pgbench.pid), time.process_time())
    return sum(part or 0.0 for part in parts)


@contextmanager
def _round(engine: PostgresEngine, seconds: float, recorded: bool) -> Iterator[Recording | None]:
    """Enters the block when the time is over, with the recording that is to be finished, if there is one."""
    if not recorded:
        time.sleep(seconds)
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        out, before = Path(folder) / "recording", Took()
        with Session(of_pid(engine.server_pid or 0), out, Schedule(seconds), lambda _: None) as session:
            attaching = before.since()
            session.run()
            yield Recording(session, out, attaching)


def _judge_losses() -> int:
    """As many calls as the machine's cores can make, all of them recorded."""
    command = [sys.executable, "-c", CALLS]
    callers = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        rules = rule_files.load("sqlite")
        target = Target(lambda: [one.pid for one in callers], rules, rules.role_of)
        told, _ = _record(target, Schedule(5, duty=1.0))
    finally:
        for one in callers:
            one.kill()
            one.wait()
    burst, losses = told["bursts"][0], told["losses"]
    rate = (losses["recorded_events"] + losses["lost_events"]) / (burst["end_ns"] - burst["start_ns"]) * 1e9
    print(f"{rate:,.0f} events/s (bar {RATE_BAR_PER_S:,}): {losses['lost_events']} lost")
    return int(losses["lost_events"] > 0 or rate < RATE_BAR_PER_S)


def _record(target: Target, schedule: Schedule) -> tuple[dict[str, Any], int]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "recording"
        told = record_running(target, out, schedule, lambda _: None)
        return told, sum(path.stat().st_size for path in out.iterdir())


@contextmanager
def _running(engine: PostgresEngine) -> Iterator[tuple[Progress, subprocess.Popen[str]]]:
    """pgbench, until the block ends."""
    progress = Progress([])
    process = _pgbench(
        engine, "-n", f"-c{CLIENTS}", "-j2", "-Mprepared", "-T86400", "-P1", "--progress-timestamp"
    )

    def listen() -> None:
        for line in process.stderr or ():
            words = line.split()
            if words[:1] == ["progress:"]:
                progress.lines.append((float(words[1]), float(words[3])))

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
