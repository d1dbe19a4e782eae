"""PostgreSQL's files by role, its archive, and a second member of its log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.engine_cases.postgres import CASES
from support.engine_contract import Load, files_under, open_directory, places_in, rows_of, until
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

CASE = CASES[0]
SETTINGS = {"log_members": "2", "wal_segment_size": "1MB"}
SEGMENT = "000000010000000000000007"


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if reason := request.param.missing():
        pytest.skip(reason)
    with open_directory() as directory, engines.create_engine(request.param.name, SETTINGS) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        CASE.fill(made, rows=20_000)
        yield made


@pytest.fixture(scope="module")
def alone() -> Iterator[PostgresEngine]:
    with open_directory() as directory, PostgresEngine("postgres", embedded_postgres()) as made:
        made.init(places_in(directory, made.roles - {Role.ARCHIVE}))
        made.start()
        yield made


def segments(directory: Path, ending: str) -> dict[str, bytes]:
    """Contents of the whole segments in a directory, by name."""
    files = [file for file in directory.glob(f"*{ending}") if len(file.name) == 24 + len(ending)]
    return {file.name.removesuffix(ending): file.read_bytes() for file in files}


def test_the_log_has_its_archive_and_its_second_member(engine: Engine) -> None:
    """Both hold the segments that the log held, byte for byte; the server is stopped, so nothing changes."""
    archive = engine.directories[Role.ARCHIVE]
    (member,) = engine.directories[Role.LOG].parent.glob("postgres-log-member-*")
    assert len(engine.processes()) > 3
    until(lambda: len(segments(archive, ".archived")) >= 2)
    with Load(CASE, engine, first=20_001) as load:
        assert load.lap("insert", transactions=5)["rows"] == 5
    engine.stop()
    assert engine.processes() == []
    archived, received = segments(archive, ".archived"), segments(member, "")
    assert archived.keys() & received.keys()
    for name in archived.keys() & received.keys():
        assert archived[name] == received[name]
        assert len(archived[name]) == 1 << 20
    assert {engine.role_of(file) for file in files_under(archive)} == {Role.ARCHIVE}
    assert {engine.role_of(file) for file in files_under(member)} == {Role.LOG}
    engine.start()


def test_a_second_member_goes_on_after_a_crash_and_its_loss_is_told(engine: Engine) -> None:
    engine.crash_stop()
    engine.start()
    assert rows_of(CASE, engine) >= 20_000
    assert engine.failure() is None
    receiver = engine.processes()[-1]
    assert "pg_receivewal" in Path(f"/proc/{receiver}/cmdline").read_text()
    os.kill(receiver, 9)
    until(lambda: engine.failure() == "the second member of the log is lost")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"log_members": "3"}, "setting log_members is '3'"),
        ({"wal_segment_size": "3MB"}, "setting wal_segment_size is '3MB'"),
        ({"wal_segment_size": "big"}, "setting wal_segment_size is 'big'"),
    ],
)
def test_settings_that_are_not_the_servers_are_checked(settings: dict[str, str], message: str) -> None:
    with pytest.raises(TierwiseError, match=message):
        PostgresEngine("postgres", embedded_postgres(), settings)


def file_of(engine: PostgresEngine, relation: str) -> Path:
    with psycopg.connect(engine.dsn()) as connection:
        row = connection.execute("SELECT pg_relation_filepath(%s)", [relation]).fetchone()
    assert row is not None and row[0] is not None
    return (engine.directories[Role.SYSTEM] / row[0]).resolve()


def test_a_relation_has_the_role_of_the_statement_that_made_it(alone: PostgresEngine) -> None:
    alone.execute_schema(
        [
            (Role.DATA, "CREATE TABLE kept (id integer PRIMARY KEY, name text)"),
            (Role.INDEX, "CREATE INDEX kept_name ON kept (name)"),
            (Role.SYSTEM, "CREATE TABLE tiny (id integer)"),
        ]
    )
    expected = {
        "kept": Role.DATA,
        "kept_pkey": Role.DATA,
        "kept_name": Role.INDEX,
        "tiny": Role.SYSTEM,
        "pg_class": Role.SYSTEM,
    }
    for relation, role in expected.items():
        file = file_of(alone, relation)
        assert alone.role_of(file) is role, relation
        assert file.is_relative_to(alone.directories[role].resolve()), relation


def test_a_relation_that_went_astray_keeps_its_role(alone: PostgresEngine) -> None:
    alone.execute_schema(
        [
            (Role.DATA, "CREATE TABLE moved (id integer)"),
            (Role.INDEX, "CREATE INDEX moved_id ON moved (id)"),
        ]
    )
    with psycopg.connect(alone.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE unplanned TABLESPACE pg_default AS SELECT 1")
        connection.execute("ALTER INDEX moved_id SET TABLESPACE tierwise_data")
        connection.execute("REINDEX INDEX moved_id")
        connection.execute("CREATE TABLE by_a_client (id integer)")
    for relation, role, lies_with in [
        ("moved_id", Role.INDEX, Role.DATA),
        ("unplanned", Role.DATA, Role.SYSTEM),
        ("by_a_client", Role.DATA, Role.DATA),
    ]:
        file = file_of(alone, relation)
        assert alone.role_of(file) is role
        assert file.is_relative_to(alone.directories[lies_with].resolve())


@pytest.mark.parametrize(
    ("path", "role"),
    [
        (f"/x/{SEGMENT}", Role.LOG),
        (f"/x/{SEGMENT}.partial", Role.LOG),
        ("/x/xlogtemp.17", Role.LOG),
        (f"/x/archive_status/{SEGMENT}.ready", Role.LOG),
        (f"/x/{SEGMENT}.archived", Role.ARCHIVE),
        (f"/x/{SEGMENT}.archived.part", Role.ARCHIVE),
        ("/x/PG_18_202506291/pgsql_tmp/pgsql_tmp7.0", Role.TEMP),
        ("/x/base/pgsql_tmp/pgsql_tmp7.0 (deleted)", Role.TEMP),
        ("/x/PG_18_202506291/5/t3_16390", Role.TEMP),
        ("/x/base/5/1259_fsm", Role.SYSTEM),
        ("/x/PG_18_202506291/5/999999999.1", None),
        ("/usr/bin/postgres", None),
    ],
)
def test_a_name_tells_the_role(alone: PostgresEngine, path: str, role: Role | None) -> None:
    assert alone.role_of(Path(path)) == role


def test_without_a_place_nothing_is_archived(alone: PostgresEngine) -> None:
    assert alone.settings()["archive_mode"] == "off"


def test_commits_are_those_of_the_load(alone: PostgresEngine) -> None:
    alone.execute_schema([(Role.DATA, "CREATE TABLE item (id integer, body text)")])
    sampler = alone.sampler()
    before = alone.counters()
    sampler.start()
    with Load(CASE, alone, clients=2) as load:
        load.lap("insert", transactions=100)
        time.sleep(0.5)
    sampler.stop()
    time.sleep(2)
    commits, readings, deadline = 0, 0, time.monotonic() + 60
    while commits < 100 and time.monotonic() < deadline:  # sessions report late, and on a busy machine later
        time.sleep(0.2 * readings)
        commits, readings = alone.counters().since(before).commits or 0, readings + 1
    # The two statements of each reading are commits as well.
    assert 100 <= commits < 100 + 18 + 2 * readings
