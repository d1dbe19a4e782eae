"""Bars of recording: what it costs a busy PostgreSQL, how much it writes, and that it loses no event.

``python benchmarks/record_cost.py [--rounds N] [--seconds S]``. pgbench's TPC-B runs with 10 clients on a
server whose files are in memory, so that the processors are the limit and every event costs throughput.
Rounds with recording at the default duty and rounds without take turns; each with is compared with those
beside it. Then processes that do nothing but system calls are recorded all the time. Exit status 1 if a bar
is missed.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierwise import engines
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.host import ledger
from tierwise.record import Schedule, Target, of_pid, record_running
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


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=30)
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
    sizes, recorded = [], []
    with _running(engine) as progress:
        time.sleep(5)
        for number in range(2 * options.rounds + 1):
            start_s = time.time()
            if number % 2:
                told, size_bytes = _record(of_pid(engine.server_pid or 0), Schedule(options.seconds))
                sizes.append(size_bytes / 1e6 / told["duration_s"] * 60)
                recorded.append(told)
            else:
                time.sleep(options.seconds)
            rates = progress.between(start_s, min(start_s + options.seconds, time.time()))
            spans.append(Span(number % 2 == 1, len(rates), round(sum(rates))))
            print(
                f"  {'recorded' if number % 2 else 'alone':8} {statistics.fmean(rates):8.0f} tps", flush=True
            )
    cost = cost_of(spans, 0.0)
    assert cost is not None
    low, middle, high = (1 - cost[key] for key in ("rate_ratio_high", "rate_ratio", "rate_ratio_low"))
    events = sum(one["losses"]["recorded_events"] for one in recorded)
    lost = sum(one["losses"]["lost_events"] for one in recorded)
    traced_s = sum(b["end_ns"] - b["start_ns"] for one in recorded for b in one["bursts"]) / 1e9
    size = statistics.median(sizes)
    print(f"cost {middle:.1%} of throughput (95 %: {low:.1%} to {high:.1%}); bar {COST_BAR:.0%}")
    print(
        f"within bursts {[round(one['cost']['rate_ratio'], 3) for one in recorded]} of the rate beside them"
    )
    print(
        f"{events / traced_s:,.0f} events/s, {lost} lost; {size:.1f} MB a minute, bar {SIZE_BAR_MB_PER_MIN:g}"
    )
    return (middle > COST_BAR) + (lost > 0) + (size > SIZE_BAR_MB_PER_MIN)


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
def _running(engine: PostgresEngine) -> Iterator[Progress]:
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
        yield progress
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
