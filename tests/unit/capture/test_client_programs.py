"""Commands that are clients of a server are refused by their names; callers of a library are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise import _core
from tierwise.capture.target import refuse_client_command
from tierwise.model.errors import TierwiseError


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (["psql", "-c", "select 1"], "psql"),
        (["/usr/lib/postgresql/15/bin/pgbench", "-c", "8"], "pgbench"),
        (["mariadb", "shop"], "mariadb"),
        (["mysqldump", "--all-databases"], "mysqldump"),
        (["sysbench", "oltp_read_only", "run"], "sysbench"),
        (["sqlcmd", "-S", "db"], "sqlcmd"),
        (["redis-benchmark"], "redis-benchmark"),
        (["pgbouncer", "pgbouncer.ini"], "pgbouncer"),
        (["sudo", "-u", "postgres", "psql"], "psql"),
        (["env", "PGPORT=7000", "timeout", "-k", "5", "60s", "pgbench"], "pgbench"),
        (["sh", "-c", "exec psql -h /tmp -c 'select 1'"], "psql"),
        (["bash", "-ec", "mysqlslap --concurrency=8"], "mysqlslap"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_client_is_refused_by_its_name(line: list[str], named: str, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=f"^{named} is a client: .*--pid"):
        refuse_client_command(line, tmp_path / "out")


@pytest.mark.parametrize(
    "line",
    [
        ["sqlite3", "app.db"],
        ["duckdb", "my.duckdb"],
        ["db_bench", "--benchmarks=fillseq"],
        ["python3", "app.py", "psql"],
        ["./import.sh"],
        ["bash", "import.sh"],
        ["sh", "-c", "cd /srv && ./load"],
        ["sh", "-c", "unbalanced 'quote"],
        ["timeout", "60", "sqlite3", "app.db"],
        ["postgres", "-D", "/data"],
    ],
    ids=" ".join,
)
def test_a_program_that_may_hold_a_database_is_not(line: list[str], tmp_path: Path) -> None:
    refuse_client_command(line, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pgbouncer", "pooler"),
        ("proxysql", "pooler"),
        ("haproxy", "pooler"),
        ("pgbench", "load_generator"),
        ("mysql", "tool"),
        ("pg_receivewal", "replica"),
        ("mariadbd", "replica"),
        ("sqlite3", None),
        ("checkout-api", None),
    ],
)
def test_what_a_program_is_by_its_name(name: str, kind: str | None) -> None:
    assert _core.client_kind(name) == kind
