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
"""``invalid`` is a device that was late, which an emulated processor makes it."""


def _study(engine: str, memory: str = "256M") -> str:
    """Run it and give what the result says."""
    folder = work_folder(f"study-{engine}-{memory}")
    file = folder / "study.toml"
    workload = "simple_objects" if engine == "rocksdb" else "single_commit"
    file.write_text(STUDY.format(engine=engine, memory=memory, workload=workload), "utf-8")
    try:
        said = tierwise("run", file, "--out", folder / "results")
    except AssertionError as error:
        said = str(error)
    found = sorted(folder.glob("results/**/results.jsonl"))
    assert found, said
    (line,) = found[0].read_text("utf-8").splitlines()
    result = json.loads(line)
    assert not left_behind(), left_behind()
    return f"{result['status']}: {' '.join(result['problems'])}"


def _runs(engine: str) -> None:
    result = _study(engine)
    assert result.startswith(STATUSES), result
    print(result[:300])


def postgres() -> None:
    """PostgreSQL of tierwise."""
    _runs("postgres")


def postgres_system() -> None:
    """PostgreSQL of the distribution."""
    _runs("postgres-system")


def mariadb() -> None:
    """MariaDB of the distribution."""
    _runs("mariadb")


def sqlite() -> None:
    """SQLite."""
    _runs("sqlite")


def rocksdb() -> None:
    """RocksDB."""
    _runs("rocksdb")


def duckdb() -> None:
    """DuckDB."""
    _runs("duckdb")


def too_little_memory() -> None:
    """A limit below the server's needs is named as the cause."""
    result = _study("mariadb", "16M")
    assert "at the limit of 16M of memory" in result, result
    print(result[:300])


CHECKS = [postgres, postgres_system, mariadb, sqlite, rocksdb, duckdb, too_little_memory]
