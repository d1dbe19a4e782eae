"""A study with a memory limit on each engine, on an emulated disk."""

from __future__ import annotations

import json

from checks.tools import left_behind, tierwise, work_folder

STUDY = """
name = "compat-{engine}"
question = "Does it run here?"
engines = ["{engine}"]
workload = "{workload}"
scale = 0.1
clients = 1
seconds = 3
repeats = 1
memory = "{memory}"
baseline = "one"
[devices.d]
profile = "ssd-sata-dc"
[placements.one]
default = "d"
"""
STATUSES = ("ok", "invalid")
"""``invalid`` means a late device, which an emulated processor causes."""


def _study(engine: str, memory: str) -> str:
    """Run it and return its output, or the result's message."""
    folder = work_folder(f"study-{engine}-{memory}")
    file = folder / "study.toml"
    workload = "simple_objects" if engine == "rocksdb" else "single_commit"
    file.write_text(STUDY.format(engine=engine, memory=memory, workload=workload), "utf-8")
    output = tierwise("study", "run", file, "--output", folder / "results", status=None)
    assert not left_behind(), left_behind()
    for path in folder.glob("results/**/results.jsonl"):
        (line,) = path.read_text("utf-8").splitlines()
        result = json.loads(line)
        return f"{result['status']}: {' '.join(result['problems'])}"
    return output


def _runs(engine: str, memory: str) -> None:
    """It must run with the least memory that it accepts, as it does with version 1 of control groups."""
    result = _study(engine, memory)
    assert result.startswith(STATUSES), result
    print(f"{memory}: {result[:300]}")


def postgres() -> None:
    """PostgreSQL of tierwise."""
    _runs("postgres", "64M")


def postgres_system() -> None:
    """PostgreSQL of the distribution."""
    _runs("postgres-system", "64M")


def mariadb() -> None:
    """MariaDB of the distribution."""
    _runs("mariadb", "96M")


def sqlite() -> None:
    """SQLite."""
    _runs("sqlite", "64M")


def rocksdb() -> None:
    """RocksDB."""
    _runs("rocksdb", "64M")


def duckdb() -> None:
    """DuckDB."""
    _runs("duckdb", "96M")


def too_little_memory() -> None:
    """A limit below the server's needs is refused, with the least accepted limit."""
    result = _study("mariadb", "16M")
    assert "cannot run in 16M of memory: give it 96M" in result, result
    print(result.strip().splitlines()[-1])


CHECKS = [postgres, postgres_system, mariadb, sqlite, rocksdb, duckdb, too_little_memory]
