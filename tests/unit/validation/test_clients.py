"""Options of client programs that others wrote, and their percentiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.client_cases import spec_of
from tierwise.lab.validation import clients
from tierwise.lab.validation.clients.validation_client import latency_percentiles
from tierwise.model.errors import TierwiseError


@pytest.mark.parametrize(
    ("client", "option", "value"),
    [
        ("sqlite-shell", "journal", "wal;\n.shell id\n"),
        ("sysbench", "script", "../../tmp/mine"),
        ("duckdb-tpch", "memory", "1GB'; COPY (SELECT 1) TO '/tmp/x"),
        ("duckdb-tpch", "scale", "1); SELECT (1"),
        ("pgbench", "scale", -1),
        ("pgbench", "scale", 0),
        ("pgbench", "rate", 0.5),
        ("pgbench", "mode", "tpcc"),
        ("pgbench", "protocol", "binary"),
        ("postgres-jobs", "repeat", 0),
        ("postgres-jobs", "job", "optimize"),
        ("go-tpc", "work", "tpch"),
        ("sqlite-shell", "journal", "truncate"),
        ("duckdb-tpch", "scale", 1e300),
    ],
)
def test_an_option_cannot_become_a_statement_or_a_path(client: str, option: str, value: Any) -> None:
    with pytest.raises(TierwiseError, match=f"{client}: option '{option}' is "):
        clients.client_class(client)({option: value}, 1)


def test_a_client_without_a_server_takes_no_memory_limit(open_path: Path) -> None:
    with pytest.raises(TierwiseError, match="memory limits a server, and client sqlite-shell has none"):
        spec_of(open_path, "sqlite-shell", 'memory = "256M"')


def test_only_a_script_has_think_time() -> None:
    with pytest.raises(TierwiseError, match="mode simple has no think time"):
        clients.client_class("pgbench")({"mode": "simple", "think_ms": 5}, 1)


def test_clients_with_other_data_have_no_dataset_in_common() -> None:
    few, many = (clients.client_class("sysbench")({"tables": tables}, 1).dataset for tables in (2, 4))
    assert few != many
    jobs = [clients.client_class("postgres-jobs")({"job": job}, 1).dataset for job in ("copy", "vacuum")]
    assert len(set(jobs)) == 2
    loads = [clients.client_class("pgbench")({"mode": mode}, 1).dataset for mode in ("tpcb", "select")]
    assert len(set(loads)) == 1


def test_percentiles_by_hand() -> None:
    assert latency_percentiles(dict.fromkeys(map(float, range(1, 101)), 1)) == {
        "p50_us": 50, "p95_us": 95, "p99_us": 99,
    }  # fmt: skip
    assert latency_percentiles({10.0: 96, 20.0: 4}) == {"p50_us": 10, "p95_us": 10, "p99_us": 20}
    assert latency_percentiles({}) == {}
