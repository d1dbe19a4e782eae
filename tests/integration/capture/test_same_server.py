"""A DSN must lead to the recorded server: directly, through a proxy, and in every session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, places_in
from support.engine_sessions import root_of, superuser_dsn
from support.forwarder import forwarding
from tierwise.capture import DayPlan, DayRecorder, EngineCounters, Schedule, Target, dsn, of_pid
from tierwise.capture.observe import observe
from tierwise.engines.base import Engine
from tierwise.engines.mariadb.binaries import installed
from tierwise.engines.mariadb.engine import MariadbEngine
from tierwise.engines.postgres.binaries import embedded
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError

SECRET = "planted-9f3a"
WATCHED = {"performance_schema": "ON", "performance_schema_consumer_events_waits_current": "ON"}


class Pair(NamedTuple):
    """Two servers of one engine: targets, DSNs of their own, sockets."""

    targets: list[Target]
    dsns: list[dsn.Dsn]
    sockets: list[Path]

    def connect(self, source: dsn.Dsn, recorded: int = 0) -> EngineCounters:
        one = self.targets[recorded]
        return EngineCounters.connect(source, one.rules, one)

    def by_way_of(self, port: int, user: str = "watcher") -> dsn.Dsn:
        """A DSN that leads to a port."""
        kind = self.dsns[0].kind
        name = "postgres" if kind == "postgresql" else ""
        return dsn.parse(f"{kind}://{user}:{SECRET}@127.0.0.1:{port}/{name}", "test")


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    if request.param == "mariadb" and (reason := CASES[0].missing()):
        pytest.skip(reason)
    with ExitStack() as undo:
        found = Pair([], [], [])
        for _ in range(2):
            engine: PostgresEngine | MariadbEngine
            if request.param == "postgres":
                engine = undo.enter_context(PostgresEngine("postgres", embedded(), {}))
            else:
                engine = undo.enter_context(MariadbEngine("mariadb", installed(), WATCHED))
            engine.init(places_in(undo.enter_context(open_directory()), engine.roles))
            engine.start()
            place = prepared(engine)
            found.targets.append(of_pid(pid_of(engine)))
            found.dsns.append(own_dsn(place))
            found.sockets.append(place)
        yield found


def pid_of(engine: Engine) -> int:
    pid = engine.server_pid
    assert pid is not None
    return pid


def prepared(engine: PostgresEngine | MariadbEngine) -> Path:
    """Make a user without rights beyond its own; the server's socket."""
    if isinstance(engine, PostgresEngine):
        with psycopg.connect(superuser_dsn(engine), autocommit=True) as session:
            for role in ("watcher", "monitor"):
                session.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")
            session.execute("GRANT pg_monitor TO monitor")
        words = dict(word.split("=") for word in superuser_dsn(engine).replace("'", "").split())
        return Path(words["host"]) / f".s.PGSQL.{words['port']}"
    with root_of(engine) as connection, connection.cursor() as cursor:
        for user in ("watcher", "monitor"):
            cursor.execute(f"CREATE USER {user}@localhost IDENTIFIED BY '{SECRET}'")
        cursor.execute("GRANT PROCESS ON *.* TO monitor@localhost")
        cursor.execute("GRANT SELECT ON performance_schema.* TO monitor@localhost")
    return Path(engine.settings()["socket"])


def own_dsn(place: Path) -> dsn.Dsn:
    if place.name.startswith(".s.PGSQL."):
        port = place.suffix.removeprefix(".")
        return dsn.parse(
            f"host={place.parent} port={port} user=watcher password={SECRET} dbname=postgres", "test"
        )
    return dsn.parse(f"mysql://watcher:{SECRET}@localhost?unix_socket={place}", "test")


def test_the_recorded_server_s_own_dsn_is_taken(pair: Pair) -> None:
    for number, source in enumerate(pair.dsns):
        counters = pair.connect(source, recorded=number)
        assert counters.warnings == []
        assert counters.version
        assert counters.settings


def test_another_server_s_dsn_is_refused_and_both_are_named(pair: Pair) -> None:
    with pytest.raises(TierwiseError) as refused:
        pair.connect(pair.dsns[1])
    message = str(refused.value)
    directories = [str(Path(f"/proc/{one.pid}/cwd").readlink()) for one in pair.targets]
    assert all(directory in message for directory in directories)
    assert f"--pid {pair.targets[1].pid}" in refused.value.fix
    assert SECRET not in message


def test_a_day_takes_the_recorded_server_s_dsn_alone(pair: Pair, tmp_path: Path) -> None:
    one, plan = pair.targets[0], DayPlan(20.0, 10.0, Schedule(5.0, 0.5, 0.5))
    day = DayRecorder(
        one.pid or 0,
        of_pid,
        tmp_path / "day",
        plan,
        progress=lambda _: None,
        note=lambda _: None,
        counters=lambda found: EngineCounters.connect(pair.dsns[1], found.rules, found),
    )
    with pytest.raises(TierwiseError, match="its server is another one"):
        day.run()
    assert day.taken == []


def test_behind_a_proxy_the_server_s_own_numbers_decide(pair: Pair) -> None:
    with forwarding(pair.sockets[0]) as port:
        assert pair.connect(pair.by_way_of(port)).warnings == []
    with forwarding(pair.sockets[1]) as port, pytest.raises(TierwiseError, match="its server is another one"):
        pair.connect(pair.by_way_of(port))


def test_a_balancer_gives_no_counts(pair: Pair) -> None:
    """Sessions of one reading and the next are of different servers: their difference is nobody's."""
    with forwarding(*pair.sockets) as port:
        counters = EngineCounters(pair.by_way_of(port))
        counters.begin()
        counters.end()
    assert counters.transactions is None
    (warning,) = counters.warnings
    assert "led elsewhere" in warning


def test_an_observation_is_of_one_server(pair: Pair, tmp_path: Path) -> None:
    with forwarding(*pair.sockets) as port, pytest.raises(TierwiseError, match="of different servers"):
        observe(pair.by_way_of(port, "monitor"), tmp_path / "o", 1.0, cores=2)
