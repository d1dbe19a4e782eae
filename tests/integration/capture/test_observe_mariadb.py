"""Observing a MariaDB: without its performance_schema nothing is invented, with it waits are seen."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support import own_servers
from support.engine_contract import open_directory, until
from support.engine_sessions import client_of
from support.watched_servers import WATCHED, dsn_of, watched_mariadb
from tierwise.capture.observe import observe
from tierwise.capture.sql_session import parse
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.recording import Observation


def test_a_server_that_does_not_watch_its_sessions_is_not_observed(tmp_path: Path) -> None:
    with (
        watched_mariadb({}) as engine,
        pytest.raises(TierwiseError, match="performance_schema is off") as raised,
    ):
        observe(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
    assert "performance_schema=ON" in raised.value.fix and not (tmp_path / "o").exists()


def test_waits_are_seen_with_the_rights_alone(tmp_path: Path) -> None:
    with watched_mariadb(WATCHED) as engine:
        with pytest.raises(TierwiseError, match="may not see") as raised:
            observe(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
        assert "GRANT PROCESS ON *.* TO 'watcher'@'localhost'" in raised.value.fix
        observed = _observed(engine, tmp_path / "o")
    assert observed.engine == "mariadb"
    assert observed.sessions_in("log_lock", "log_sync", role=Role.LOG) > 0.05
    assert observed.transactions and observed.counts["log_bytes"] > 0
    assert observed.sizes[Role.LOG] > 0 and observed.sizes[Role.DATA] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server as another account")
def test_a_wait_that_has_not_ended_is_seen(tmp_path: Path) -> None:
    """It has a time of its end, the current one: none of a file was seen, and reads counted as work."""
    settings = WATCHED | {"log_bin": "binary", "sync_binlog": "1", "server_id": "1"}
    with open_directory() as home, own_servers.mariadb(home, **settings) as server:
        server.execute("CREATE DATABASE test")
        dsn = parse(f"mysql://root@localhost?unix_socket={quote(str(home / 'socket'))}", "test")
        with inserting(server.mariadb, "test.made"):
            observed = observe(dsn, tmp_path / "o", 3.0, rate_hz=50.0)
    assert observed.sessions_in("data_write", role=Role.ARCHIVE) > 0.01


def _observed(engine: MariadbEngine, out: Path) -> Observation:
    with inserting(partial(client_of, engine, autocommit=True), "made"):
        return observe(dsn_of(engine, "monitor"), out, 2.0, rate_hz=50.0, cores=2)


@contextmanager
def inserting(connected: Callable[[], AbstractContextManager[Any]], table: str) -> Iterator[None]:
    """One client commits inserts meanwhile."""
    stop, done = threading.Event(), [0]

    def work() -> None:
        with connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY AUTO_INCREMENT) ENGINE=InnoDB")
            while not stop.is_set():
                cursor.execute(f"INSERT INTO {table} VALUES ()")
                done[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until(lambda: done[0] > 0)
        yield
    finally:
        stop.set()
        thread.join()
