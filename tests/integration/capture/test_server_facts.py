"""What files and links tell about a running server: its settings, its version, the roles of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import own_servers
from support.engine_cases.mariadb import CASES
from support.own_servers import OwnServer
from tierwise.capture.target import identify_server, target_of_process


@pytest.fixture
def postgres(open_path: Path) -> Iterator[OwnServer]:
    with own_servers.postgres(open_path, shared_buffers="4096") as server:
        yield server


@pytest.fixture
def mariadb(open_path: Path) -> Iterator[OwnServer]:
    if reason := CASES[0].missing():
        pytest.skip(reason)
    settings = {"innodb_buffer_pool_size": "32M", "sync-binlog": "1", "log-bin": f"{open_path}/db1-log"}
    with own_servers.mariadb(open_path, {"innodb-flush-log-at-trx-commit": "2"}, **settings) as server:
        yield server


def test_settings_of_postgres_are_those_of_its_files(postgres: OwnServer) -> None:
    target = target_of_process(postgres.pid)
    assert target.settings["shared_buffers"] == "32768kB"
    assert "commit_delay" not in target.settings
    postgres.execute(
        "ALTER SYSTEM SET commit_delay = 20000", "ALTER SYSTEM SET synchronous_standby_names = 'db2'"
    )
    target = target_of_process(postgres.pid)
    assert target.settings["commit_delay"] == "20000"
    assert target.settings["synchronous_standby_names"] == "set", "names of hosts are not kept"
    assert target.version is not None and target.version.isdigit()


def test_copies_of_the_log_elsewhere_are_its_archive(postgres: OwnServer) -> None:
    role_of, segment = target_of_process(postgres.pid).rules.role_of, "000000010000000000000001"
    assert role_of(f"{postgres.home}/data/pg_wal/{segment}") == "log"
    assert role_of(f"/backup/{segment}") == "archive"
    assert role_of(f"/backup/{segment}.gz") == "archive"


def test_settings_of_mariadb_are_those_of_its_file_and_its_command_line(mariadb: OwnServer) -> None:
    target = target_of_process(mariadb.pid)
    assert target.settings["innodb_buffer_pool_size"] == str(32 << 20)
    assert target.settings["sync_binlog"] == "1"
    assert target.settings["log_bin"] == "ON"
    assert target.settings["innodb_flush_log_at_trx_commit"] == "2"


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_server_is_described_by_what_tells_it_from_others(
    engine: str, request: pytest.FixtureRequest
) -> None:
    server: OwnServer = request.getfixturevalue(engine)
    facts = identify_server(server.pid, target_of_process(server.pid).rules)
    assert facts["data_directory"] == str(server.home / "data")
    assert any(path.startswith(str(server.home)) for path in facts["sockets"])
    assert facts["version"] is not None and facts["version"] in facts["described"]
    assert not facts["in_container"] and facts["ports"] == []
    assert f"pid {server.pid}, {engine}" in facts["described"]
