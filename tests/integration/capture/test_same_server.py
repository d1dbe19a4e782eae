"""A DSN must lead to the recorded server: directly, through a proxy, and in every session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from support.forwarder import forwarding
from support.watched_servers import SECRET, WATCHED, dsn_of, watched_mariadb, watched_postgres
from tierwise.capture import sql_session
from tierwise.capture.day_recorder import DayRecorder
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.observe import observe_server
from tierwise.capture.schedule import BurstSchedule, DayPlan
from tierwise.capture.target import RecordingTarget, target_of_process
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError


class Pair(NamedTuple):
    """Two servers of one engine: targets, DSNs of their own, sockets."""

    targets: list[RecordingTarget]
    dsns: list[sql_session.Dsn]
    sockets: list[Path]

    def connect(self, source: sql_session.Dsn, recorded: int = 0) -> EngineCounters:
        target = self.targets[recorded]
        return EngineCounters.connect(source, target)

    def by_way_of(self, port: int, user: str = "watcher") -> sql_session.Dsn:
        """A DSN that leads to a port."""
        kind = self.dsns[0].kind
        name = "postgres" if kind == "postgresql" else ""
        return sql_session.parse_dsn(f"{kind}://{user}:{SECRET}@127.0.0.1:{port}/{name}", "test")


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with ExitStack() as undo:
        pair = Pair([], [], [])
        for _ in range(2):
            engine: PostgresEngine | MariadbEngine
            if request.param == "postgres":
                engine = undo.enter_context(watched_postgres())
                words = dict(word.split("=") for word in dsn_of(engine).text.split())
                place = Path(words["host"]) / f".s.PGSQL.{words['port']}"
            else:
                engine = undo.enter_context(watched_mariadb(WATCHED))
                place = Path(engine.settings()["socket"])
            pair.targets.append(target_of_process(engine.server_pid or 0))
            pair.dsns.append(dsn_of(engine))
            pair.sockets.append(place)
        yield pair


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
    directories = [str(Path(f"/proc/{target.pid}/cwd").readlink()) for target in pair.targets]
    assert all(directory in message for directory in directories)
    assert f"--pid {pair.targets[1].pid}" in refused.value.fix
    assert SECRET not in message


def test_a_day_takes_the_recorded_server_s_dsn_alone(pair: Pair, tmp_path: Path) -> None:
    target, plan = pair.targets[0], DayPlan(20.0, 10.0, BurstSchedule(5.0, 0.5, 0.5))
    day = DayRecorder(
        target.pid or 0,
        target_of_process,
        tmp_path / "day",
        plan,
        progress=lambda _: None,
        note=lambda _: None,
        dsn=pair.dsns[1],
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
        observe_server(pair.by_way_of(port, "monitor"), tmp_path / "o", 1.0, cores=2)
