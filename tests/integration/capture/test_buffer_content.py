"""What the buffer of a server holds, by file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from support.engine_sessions import client_of, root_of
from support.watched_servers import administrator, dsn_of, watched_mariadb, watched_postgres
from tierwise.capture import mysql_session
from tierwise.capture.engine_counters import EngineCounters
from tierwise.capture.mysql_session import MysqlSession
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.target import target_of_process
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.recording.buffer_content import BufferContent
from tierwise.recording.relations import Relation, Relations, relations_of


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresEngine]:
    with watched_postgres() as made:
        with administrator(made) as session:
            session.execute("INSERT INTO part SELECT generate_series(1, 100000)")
            session.execute("CREATE INDEX part_id ON part (id)")
            session.execute("SELECT sum(id) FROM part")
        yield made


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbEngine]:
    with watched_mariadb({}) as made:
        with client_of(made) as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO part SELECT seq FROM seq_1_to_50000")
            connection.commit()
        yield made


def counters(engine: PostgresEngine | MariadbEngine, user: str) -> EngineCounters:
    dsn = replace(dsn_of(engine, user), buffer_content=True)
    made = EngineCounters.connect(dsn, target_of_process(engine.server_pid or 0))
    made.read_relations()
    made.read_buffer()
    return made


def joined(engine: PostgresEngine | MariadbEngine, made: EngineCounters) -> tuple[Relations, BufferContent]:
    named = [Relation.model_validate(row) for row in made.relations]
    assert made.buffer is not None
    return relations_of(engine.name, [], named, made.buffer), made.buffer


def test_postgres_needs_the_extension_then_the_right(postgres: PostgresEngine) -> None:
    with administrator(postgres) as session:
        session.execute("DROP EXTENSION IF EXISTS pg_buffercache")
    with pytest.raises(TierwiseError, match="has no extension pg_buffercache") as error:
        counters(postgres, "monitor")
    assert "CREATE EXTENSION pg_buffercache" in error.value.fix
    with administrator(postgres) as session:
        session.execute("CREATE EXTENSION pg_buffercache")
    with pytest.raises(TierwiseError, match=r"user watcher may not read public\.pg_buffercache") as error:
        counters(postgres, "watcher")
    assert error.value.fix.endswith("GRANT pg_monitor TO watcher")


def test_postgres_tells_what_is_buffered_of_each_table(postgres: PostgresEngine) -> None:
    with administrator(postgres) as session:
        session.execute("CREATE SCHEMA IF NOT EXISTS apart")
        session.execute("DROP EXTENSION IF EXISTS pg_buffercache")
        session.execute("CREATE EXTENSION pg_buffercache SCHEMA apart")
    with pytest.raises(TierwiseError, match=r"monitor may not read apart\.pg_buffercache") as error:
        counters(postgres, "monitor")
    assert error.value.fix.endswith("GRANT USAGE ON SCHEMA apart TO monitor")
    with administrator(postgres) as session:
        session.execute("GRANT USAGE ON SCHEMA apart TO monitor")
        sizes = session.execute("SELECT setting::integer FROM pg_settings WHERE name = 'shared_buffers'")
        ((buffers,),) = sizes.fetchall()
    made = counters(postgres, "monitor")
    assert made.warnings == []
    found, buffer = joined(postgres, made)
    assert buffer.pages == buffers
    assert sum(file.pages for file in buffer.files) == buffer.used_pages < buffer.pages
    for row in found.rows:
        assert 0 < row.buffered_bytes <= 1.2 * row.size_bytes + 8 * buffer.page_bytes, row
        assert sum(row.buffered_by_use.values()) * buffer.page_bytes == row.buffered_bytes
        assert set(row.buffered_by_use) <= set("012345")
    assert {row.relation.name for row in found.rows} == {"public.part", "public.part_id"}


def test_mariadb_tells_what_is_buffered_of_each_table(mariadb: MariadbEngine) -> None:
    made = counters(mariadb, "monitor")
    found, buffer = joined(mariadb, made)
    (part,) = found.rows
    assert part.relation.name == "tierwise.part"
    assert 1_000_000 < part.buffered_bytes < buffer.used_bytes < buffer.bytes
    assert set(part.buffered_by_use) == {"young", "old"}


def test_mariadb_needs_the_right_and_a_pool_that_is_not_too_large(
    mariadb: MariadbEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TierwiseError, match="may not read it") as error:
        counters(mariadb, "watcher")
    assert "GRANT PROCESS ON *.* TO 'watcher'@'localhost'" in error.value.fix
    monkeypatch.setattr(mysql_session, "_MOST_POOL_BYTES", 1 << 20)
    with pytest.raises(TierwiseError, match="is too large to be read"):
        counters(mariadb, "monitor")


@pytest.mark.parametrize("session_type", [PostgresSession, MysqlSession])
def test_what_is_gone_at_the_end_is_a_warning(
    session_type: type[PostgresSession | MysqlSession], request: pytest.FixtureRequest
) -> None:
    """The recording is worth keeping without it."""
    if session_type is PostgresSession:
        engine = request.getfixturevalue("postgres")
        with administrator(engine) as session:
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")
    else:
        engine = request.getfixturevalue("mariadb")
    made = counters(engine, "monitor")
    if session_type is PostgresSession:
        with administrator(engine) as session:
            session.execute("DROP EXTENSION pg_buffercache")
    else:
        with root_of(engine) as connection, connection.cursor() as cursor:
            cursor.execute("REVOKE PROCESS ON *.* FROM monitor@localhost")
    made.buffer = None
    made.read_buffer()
    assert made.buffer is None
    assert made.warnings[-1] == "the content of the buffer is not known: the server no longer gives it"
    if session_type is MysqlSession:
        with root_of(engine) as connection, connection.cursor() as cursor:
            cursor.execute("GRANT PROCESS ON *.* TO monitor@localhost")


def test_nothing_is_asked_without_the_option(postgres: PostgresEngine) -> None:
    made = EngineCounters.connect(dsn_of(postgres, "watcher"), target_of_process(postgres.server_pid or 0))
    made.read_buffer()
    assert made.buffer is None
    assert made.warnings == []


def test_the_session_of_a_sample_is_closed(mariadb: MariadbEngine) -> None:
    counters(mariadb, "monitor")
    with closing(MysqlSession(dsn_of(mariadb, "monitor").text)) as session:
        ((sessions,),) = session._rows(
            "SELECT count(*) FROM information_schema.processlist WHERE user = 'monitor'"
        )
    assert sessions == 1
