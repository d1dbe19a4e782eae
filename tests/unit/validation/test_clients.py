"""Options of client programs that others wrote, and their percentiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tierwise.lab import validation as validate
from tierwise.lab.validation import clients
from tierwise.lab.validation.clients.base import percentiles_of
from tierwise.model.errors import TierwiseError

HEAD = """
slot_s = 1
fewest_blocks = 2
most_blocks = 2
recorded_s = 2
warm_up_s = 1
[devices]
ram = "ram"
own = "own"
nvme = "ssd-nvme-dc"
[placements]
fast = { all = "nvme" }
log-apart = { log = "nvme", all = "ram" }
own = { all = "own" }
[sizes]
log = "1G"
data = "512M"
temp = "64M"
[settings.postgres]
max_wal_size = "256MB"
[settings.mariadb]
innodb-log-file-size = "16M"
"""
CASES = {
    "pgbench": ("postgres", 'mode = "tpcb", scale = 1', "log-apart"),
    "sysbench": ("mariadb", 'script = "oltp_read_write", scale = 1', "log-apart"),
    "db_bench": (None, "scale = 10", "log-apart"),
    "sqlite-shell": (None, "scale = 1", "fast"),
    "postgres-jobs": ("postgres", 'job = "restore", scale = 1', "own"),
    "mariadb-jobs": ("mariadb", 'job = "load_data", scale = 1', "fast"),
}


@pytest.fixture(autouse=True)
def unprobed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.lab.validation.runner._own_profile", lambda *_: None)


def _spec(directory: Path, client: str, *more: str) -> validate.ValidationSpec:
    server, options, placement = CASES[client]
    lines = [
        f'client = "{client}"',
        f"options = {{ {options} }}",
        f'recorded = ["{placement}"]',
        'load = "mixed"',
        "duty = 0.6",
        *more,
    ]
    lines += [f'server = "{server}"'] if server else []
    file = directory / "cases.toml"
    file.write_text(HEAD + "[[cases]]\nclients = [2]\n" + "\n".join(lines) + "\n", "utf-8")
    return validate.load(file)


@pytest.mark.parametrize(
    ("client", "option", "value"),
    [
        ("sqlite-shell", "journal", "wal;\n.shell id\n"),
        ("sysbench", "script", "../../tmp/mine"),
        ("duckdb-tpch", "memory", "1GB'; COPY (SELECT 1) TO '/tmp/x"),
        ("duckdb-tpch", "scale", "1); SELECT (1"),
        ("pgbench", "scale", -1),
    ],
)
def test_an_option_cannot_become_a_statement_or_a_path(client: str, option: str, value: Any) -> None:
    with pytest.raises(TierwiseError, match=f"{client}: option '{option}' is "):
        clients.create(client, {option: value}, 1)


def test_a_client_without_a_server_takes_no_memory_limit(open_path: Path) -> None:
    with pytest.raises(TierwiseError, match="memory limits a server, and client sqlite-shell has none"):
        _spec(open_path, "sqlite-shell", 'memory = "256M"')


def test_percentiles_by_hand() -> None:
    assert percentiles_of(dict.fromkeys(map(float, range(1, 101)), 1)) == {
        "p50_us": 50, "p95_us": 95, "p99_us": 99,
    }  # fmt: skip
    assert percentiles_of({10.0: 96, 20.0: 4}) == {"p50_us": 10, "p95_us": 10, "p99_us": 20}
    assert percentiles_of({}) == {}
