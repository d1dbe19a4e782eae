"""MariaDB's statements, files and logs as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.lab.engines.mariadb.file_roles import MariadbFiles, place_table_in_directory
from tierwise.lab.engines.mariadb.server import data_loss_messages
from tierwise.lab.engines.server_engine import fix_for_server_error
from tierwise.model.placement import Role


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (a int)", "CREATE TABLE t (a int) DATA DIRECTORY='/p'"),
        (
            "create table if not exists `t` (a char(3) default ')', b int) comment='x'",
            "create table if not exists `t` (a char(3) default ')', b int) DATA DIRECTORY='/p' comment='x'",
        ),
        ("CREATE TABLE t AS SELECT 1", "CREATE TABLE t DATA DIRECTORY='/p' AS SELECT 1"),
        ("CREATE TEMPORARY TABLE t (a int)", "CREATE TEMPORARY TABLE t (a int)"),
        ("CREATE INDEX i ON t (a)", "CREATE INDEX i ON t (a)"),
    ],
)
def test_the_clause_goes_behind_the_columns(sql: str, expected: str) -> None:
    assert place_table_in_directory(sql, Path("/p")) == expected


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/x/ib_logfile0", Role.LOG),
        ("/x/undo002", Role.UNDO),
        ("/x/binlog.000017", Role.ARCHIVE),
        ("/x/#1234 (deleted)", Role.TEMP),
        ("/x/#sql-temptable-1-2-3.MAD", Role.TEMP),
        ("/x/tierwise/t.ibd", Role.DATA),
        ("/x/tierwise/#sql-ib20.ibd", Role.DATA),
        ("/x/tierwise/t#P#p0.ibd", Role.DATA),
        ("/x/mysql/user.ibd", None),
        ("/usr/sbin/mariadbd", None),
    ],
)
def test_a_name_tells_the_role(path: str, role: Role | None) -> None:
    assert MariadbFiles().role_of(Path(path)) == role


def test_logs_become_one_line() -> None:
    log = (
        "x [Note] InnoDB: fine\nx [ERROR] InnoDB: preallocating 9 bytes failed with error 28\n"
        "x [ERROR] /usr/sbin/mariadbd: The table 'item' is full\nx [ERROR] Aborting\n"
    )
    assert data_loss_messages(log)[1] == "The table 'item' is full"
    assert "space" in fix_for_server_error("The table 'item' is full", "innodb_buffer_pool_size")
    assert "mend" in fix_for_server_error("something odd", "innodb_buffer_pool_size")
