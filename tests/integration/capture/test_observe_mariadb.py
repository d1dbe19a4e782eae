"""Observing a MariaDB: without its performance_schema nothing is invented, with it waits are seen."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, places_in, until
from support.engine_sessions import client_of
from tierwise.capture.dsn import Dsn, parse
from tierwise.capture.observe import observe
from tierwise.engines.mariadb.binaries import installed
from tierwise.engines.mariadb.engine import MariadbEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.roles import Role
from tierwise.recording import Observation

WATCHED = {"performance_schema": "ON", "performance_schema_consumer_events_waits_current": "ON"}


def dsn_of(engine: MariadbEngine) -> Dsn:
    words = dict(word.split("=", 1) for word in engine._known_server().address.split())
    user, password = quote(words["user"]), quote(words["password"], safe="")
    return parse(f"mysql://{user}:{password}@localhost/?unix_socket={quote(words['socket'])}", "test")


@pytest.mark.parametrize("watched", [False, True])
def test_only_a_server_that_watches_its_sessions_is_observed(tmp_path: Path, watched: bool) -> None:
    if reason := CASES[0].missing():
        pytest.skip(reason)
    settings = WATCHED if watched else {}
    with open_directory() as directory, MariadbEngine("mariadb", installed(), settings) as engine:
        engine.init(places_in(directory, engine.roles))
        engine.start()
        if not watched:
            with pytest.raises(TierwiseError, match="performance_schema is off") as raised:
                observe(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
            assert "performance_schema=ON" in raised.value.fix and not (tmp_path / "o").exists()
            return
        with pytest.raises(TierwiseError, match="may not see") as raised:
            observe(dsn_of(engine), tmp_path / "o", 1.0, cores=2)
        assert "GRANT PROCESS ON *.* TO 'tierwise_client'@'localhost'" in raised.value.fix
        _grant(engine)
        found = _observed(engine, tmp_path / "o")
    assert found.engine == "mariadb"
    assert found.sessions_in("log_lock", "log_sync", role=Role.LOG) > 0.05
    assert found.transactions and found.counts["log_bytes"] > 0
    assert found.sizes[Role.LOG] > 0 and found.sizes[Role.DATA] > 0


def _grant(engine: MariadbEngine) -> None:
    server = engine._known_server()
    server.query("GRANT PROCESS ON *.* TO tierwise_client@localhost")
    server.query("GRANT SELECT ON performance_schema.* TO tierwise_client@localhost")


def _observed(engine: MariadbEngine, out: Path) -> Observation:
    """Beside one client that commits inserts."""
    stop, done = threading.Event(), [0]

    def work() -> None:
        with client_of(engine, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE made (id INTEGER PRIMARY KEY AUTO_INCREMENT) ENGINE=InnoDB")
            while not stop.is_set():
                cursor.execute("INSERT INTO made VALUES ()")
                done[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until(lambda: done[0] > 0)
        return observe(dsn_of(engine), out, 2.0, rate_hz=50.0, cores=2)
    finally:
        stop.set()
        thread.join()
