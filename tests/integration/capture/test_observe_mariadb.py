"""Observing a MariaDB: without its performance_schema nothing is invented, with it waits are seen."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support import own_servers
from support.engine_contract import open_directory, until
from support.engine_sessions import client_of
from support.watched_servers import WATCHED, dsn_of, watched_mariadb
from tierwise.capture.mysql_session import MysqlSession
from tierwise.capture.observe import observe_server
from tierwise.capture.sql_session import Dsn, parse_dsn
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.recording import Observation


def test_a_server_that_does_not_watch_its_sessions_is_not_observed(tmp_path: Path) -> None:
    with (
        watched_mariadb({}) as engine,
        pytest.raises(TierwiseError, match="performance_schema is off") as raised,
    ):
        observe_server(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
    assert "performance_schema=ON" in raised.value.fix and not (tmp_path / "o").exists()


def test_waits_are_seen_with_the_rights_alone(tmp_path: Path) -> None:
    with watched_mariadb(WATCHED) as engine:
        with pytest.raises(TierwiseError, match="may not see") as raised:
            observe_server(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
        assert "GRANT PROCESS ON *.* TO 'watcher'@'localhost'" in raised.value.fix
        observed = _observed(engine, dsn_of(engine, "monitor"), tmp_path / "o")
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
        dsn = parse_dsn(f"mysql://root@localhost?unix_socket={quote(str(home / 'socket'))}", "test")
        with inserting(server.mariadb, "test.made"):
            observed = observe_server(dsn, tmp_path / "o", 3.0, rate_hz=50.0)
    assert observed.sessions_in("data_write", role=Role.ARCHIVE) > 0.01
    assert observed.sizes[Role.ARCHIVE] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server as another account")
def test_sizes_that_the_rights_do_not_tell_are_named(tmp_path: Path) -> None:
    settings = WATCHED | {"log_bin": "binary", "server_id": "1"}
    address = "mysql://monitor@localhost?unix_socket="
    with open_directory() as home, own_servers.mariadb(home, **settings) as server:
        server.execute(
            "CREATE USER monitor@localhost",
            "GRANT PROCESS ON *.* TO monitor@localhost",
            "GRANT SELECT ON performance_schema.* TO monitor@localhost",
            "CREATE DATABASE mysqlshop",
            "CREATE TABLE mysqlshop.part (id INTEGER) ENGINE=InnoDB",
            "CREATE TABLE mysqlshop.old (id INTEGER) ENGINE=MyISAM",
        )
        with closing(MysqlSession(address + quote(str(home / "socket")))) as session:
            session.watch()
            sizes, limits = session.sizes(), " ".join(session.limits)
            assert "1 table of MyISAM or Aria" in limits and "lacks the right REPLICATION CLIENT" in limits
            assert sizes[Role.DATA] > 0, "mysqlshop is no database of the server's own"
            server.execute("GRANT REPLICATION CLIENT ON *.* TO monitor@localhost")
        with closing(MysqlSession(address + quote(str(home / "socket")))) as session:
            assert session.sizes()[Role.ARCHIVE] > 0


def test_a_session_that_never_acts_is_no_client(tmp_path: Path) -> None:
    """The pause of one halves the time that a faster log could save."""
    with watched_mariadb(WATCHED) as engine, client_of(engine, autocommit=True):
        dsn = dsn_of(engine, "monitor")
        time.sleep(3)
        observed = _observed(engine, dsn, tmp_path / "o")
    assert observed.sessions == pytest.approx(1.0, abs=0.1)
    assert any("did nothing for" in limit for limit in observed.limits)


def test_a_pause_before_the_first_act_counts() -> None:
    with watched_mariadb(WATCHED) as engine, client_of(engine, autocommit=True) as client:
        number = client.thread_id()
        time.sleep(3)
        with closing(MysqlSession(dsn_of(engine, "monitor").text)) as session:
            assert number in session.look(0.0).unused
            client.ping()
            assert number in session.look(0.0).active


def _observed(engine: MariadbEngine, dsn: Dsn, out: Path) -> Observation:
    with inserting(partial(client_of, engine, autocommit=True), "made"):
        return observe_server(dsn, out, 2.0, rate_hz=50.0, cores=2)


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
