"""Bars of a large load: steady memory of the clients, no row and no commit lost.

``nice python benchmarks/load_limit.py [--rows N] [--clients C] [--seconds S] [--place DIRECTORY]``. Loads N
rows of about 2 KB into PostgreSQL on own storage; then C clients write one record for each transaction, for S
seconds. By default 200,000 rows; the full size is ``--rows 10000000``, a database of about 20 GB.

It prints rows/s, transactions/s and this process's peak memory while it loads and runs. Exit status is 1
if the peak is above 300 MB, if a row is missing, or if the server does not hold exactly the records of the
transactions that the clients count as committed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tierwise import _core
from tierwise.host import ledger
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.placement import Role

BAR_BYTES = 300_000_000
SEED = 7
ROW_BYTES = 2_000
SPARE = 1.25
"""Space factor for the content of pages other than rows."""
LOG_BYTES = 5e9
"""Space for the log, which the server keeps somewhat above its limit."""
POLL_S = 0.05
SCHEMA = [
    (Role.DATA, "CREATE TABLE item (id bigint NOT NULL, checked bigint NOT NULL, body text NOT NULL)"),
    (Role.DATA, "CREATE TABLE record (id bigint PRIMARY KEY, item bigint NOT NULL)"),
]
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "2GB", "autovacuum": "off", "max_connections": "250"}


def main() -> int:
    """Load, run, compare."""
    options = _options()
    _check_space(options)
    program = _program(options.rows)
    with (
        ledger.make_directory("load-limit", options.place, 0o711) as place,
        PostgresEngine("postgres", embedded_postgres(), SETTINGS) as engine,
    ):
        _start(engine, place)
        with peak_memory() as memory:
            loaded = _load(engine, program)
            report = _run(engine, program, options)
        problems = [*_missing_rows(engine, options.rows, loaded), *_lost_records(engine, report)]
        size = _number(engine, "SELECT pg_database_size(current_database())")
    print(f"database {size / 1e9:.1f} GB; peak memory {memory[0] / 1e6:.0f} MB, bar {BAR_BYTES / 1e6:.0f} MB")
    if memory[0] > BAR_BYTES:
        problems.append("too much memory")
    print("; ".join(problems) or "no row and no record lost")
    return int(bool(problems))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--place", type=Path, help="where the database is; the system's temporary directory by default"
    )
    return parser.parse_args()


def _check_space(options: argparse.Namespace) -> None:
    place = options.place or Path(tempfile.gettempdir())
    needed = options.rows * ROW_BYTES * SPARE + LOG_BYTES
    free = shutil.disk_usage(place).free
    if free < needed:
        sys.exit(
            f"{place} has {free / 1e9:.0f} GB free; {needed / 1e9:.0f} GB are needed: give another --place"
        )


def _program(rows: int) -> str:
    counter = {"kind": "counter", "start": 1, "divide": 1, "modulo": None}
    columns = {
        "id": counter,
        "checked": counter,
        "body": {"kind": "text", "low": ROW_BYTES - 70, "high": ROW_BYTES - 30},
    }
    parameters = {
        "record": {"kind": "sequence", "start": 1, "after": None, "global": True},
        "item": {"kind": "uniform", "low": 1, "high": rows},
    }
    insert = "INSERT INTO record VALUES (:record, :item)"
    steps = [{"repeat": 1, "draw": [], "sql": [insert], "sum": {"parameter": "record"}}]
    return json.dumps(
        {
            "name": "limit",
            "think_ms": 0,
            "tables": [{"name": "item", "rows": rows, "columns": _named(columns)}],
            "parameters": _named(parameters),
            "transactions": [{"name": "record", "weight": 1, "autocommit": False, "steps": steps}],
        }
    )


def _named(generators: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "generator": generator} for name, generator in generators.items()]


def _start(engine: PostgresEngine, place: Path) -> None:
    places: dict[Role, Path] = {role: place / role.value for role in engine.roles - {Role.ARCHIVE}}
    for directory in places.values():
        directory.mkdir()
    engine.init(places)
    engine.start()
    engine.execute_schema(SCHEMA)


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The greatest resident memory of this process, in bytes, while the block runs."""
    process, peak, done = psutil.Process(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(POLL_S):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def _load(engine: PostgresEngine, program: str) -> int:
    begun = time.monotonic()
    rows = _core.load_tables("postgres", engine.dsn(), program, SEED, progress=_teller("rows"))
    elapsed_s = time.monotonic() - begun
    print(f"\nloaded {rows} rows in {elapsed_s:.0f} s: {rows / elapsed_s:.0f} rows/s")
    return rows


def _run(engine: PostgresEngine, program: str, options: argparse.Namespace) -> dict[str, Any]:
    clients = _core.Clients("postgres", engine.dsn(), program, options.clients, SEED)
    report: dict[str, Any] = json.loads(
        clients.run(seconds=options.seconds, progress=_teller("transactions"))
    )
    clients.close()
    rate = report["transactions"] / report["elapsed_s"]
    print(f"\n{options.clients} clients: {report['transactions']} transactions, {rate:.0f} a second")
    return report


def _teller(what: str) -> Callable[[int], None]:
    memory = psutil.Process().memory_info
    return lambda done: print(f"\r{done} {what}, {memory().rss / 1e6:.0f} MB", end="", flush=True)


def _missing_rows(engine: PostgresEngine, rows: int, loaded: int) -> Iterator[str]:
    held, total = _row(engine, "SELECT count(*), coalesce(sum(id), 0) FROM item WHERE id = checked")
    if (loaded, held, total) != (rows, rows, rows * (rows + 1) // 2):
        yield f"{rows} rows were to be loaded, {loaded} were, and the server holds {held}"


def _lost_records(engine: PostgresEngine, report: dict[str, Any]) -> Iterator[str]:
    held, total = _row(engine, "SELECT count(*), coalesce(sum(id), 0) FROM record")
    if (held, total) != (report["transactions"], report["checksum"]):
        yield f"{report['transactions']} transactions committed, and the server holds {held} records"


def _row(engine: PostgresEngine, sql: str) -> tuple[int, ...]:
    with psycopg.connect(engine.dsn()) as connection:
        row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return tuple(int(value) for value in row)


def _number(engine: PostgresEngine, sql: str) -> int:
    return _row(engine, sql)[0]


if __name__ == "__main__":
    sys.exit(main())
