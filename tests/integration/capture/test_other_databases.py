"""Names of tables and indexes from all databases of a PostgreSQL server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from support.engine_sessions import superuser_dsn
from support.watched_servers import administrator, dsn_of, watched_postgres
from tierwise.capture import postgres_session as sessions
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.sql_session import SqlReadError
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.recording.relations import Relation


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresEngine]:
    """Databases with a table of the same name; of some no names can be had."""
    with watched_postgres() as made:
        with administrator(made) as session:
            for name in ("shop", '"eu.shop"', "busy", "shut", "denied"):
                session.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        for name in ("shop", "eu.shop", "busy"):
            with of_database(made, name) as session:
                session.execute("CREATE TABLE part (id integer PRIMARY KEY); INSERT INTO part VALUES (1)")
        with of_database(made, "shop") as session:
            session.execute('CREATE SCHEMA "a.b"; CREATE TABLE "a.b".c (id integer PRIMARY KEY)')
        with administrator(made) as session:
            session.execute("ALTER DATABASE busy CONNECTION LIMIT 0")
            session.execute("ALTER DATABASE shut ALLOW_CONNECTIONS false")
            session.execute("REVOKE CONNECT ON DATABASE denied FROM PUBLIC")
        yield made


def of_database(server: PostgresEngine, name: str) -> psycopg.Connection[tuple[object, ...]]:
    address = psycopg.conninfo.make_conninfo(superuser_dsn(server), dbname=name)
    return psycopg.connect(address, autocommit=True)


def number_of(server: PostgresEngine, name: str) -> str:
    with administrator(server) as session:
        ((number,),) = session.execute("SELECT oid FROM pg_database WHERE datname = %s", [name]).fetchall()
    return str(number)


def named(server: PostgresEngine) -> tuple[list[Relation], list[str]]:
    with closing(PostgresSession(dsn_of(server).text)) as session:
        return [Relation.model_validate(row) for row in session.relations()], session.limits


def test_tables_of_other_databases_have_their_database(server: PostgresEngine) -> None:
    relations, _ = named(server)
    parts = {relation.label: relation for relation in relations if relation.name == "public.part"}
    assert set(parts) == {"public.part", "shop.public.part", '"eu.shop".public.part'}
    assert parts["shop.public.part"].path.split("/")[-2] == number_of(server, "shop")
    assert len({relation.path for relation in parts.values()}) == 3
    keys = {relation.label for relation in relations if relation.is_index}
    assert keys == {"shop.public.part_pkey", '"eu.shop".public.part_pkey', 'shop."a.b".c_pkey'}
    assert {'"a.b".c'} == {relation.table for relation in relations if relation.name == '"a.b".c_pkey'}


def test_databases_without_names_are_said_by_their_numbers(server: PostgresEngine) -> None:
    """Not by name: sentences stay in a recording that is given away."""
    _, limits = named(server)
    busy, shut, denied = (number_of(server, name) for name in ("busy", "shut", "denied"))
    of = "tables and indexes of the database"
    failed, refused = sorted(limits)
    assert failed == f"{of} with pg_database.oid {busy} have no names: the connection failed"
    assert refused.startswith(f"{of}s with pg_database.oid ")
    assert refused.endswith(" have no names: the user of the DSN may not connect to them")
    assert shut in refused and denied in refused


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("_MOST_DATABASES", 0, "only 0 databases"), ("_NAMING_S", 0.0, "0 s were over"),
     ("_MOST_RELATIONS", 1, "only 1 names")],
)  # fmt: skip
def test_limits_of_asking_are_said(
    server: PostgresEngine, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, reason: str
) -> None:
    monkeypatch.setattr(sessions, limit, value)
    relations, limits = named(server)
    assert {relation.database for relation in relations} == {""}
    (told,) = [each for each in limits if reason in each]
    assert number_of(server, "shop") in told


def test_a_database_of_which_only_the_largest_have_names_is_said(
    server: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, _ = named(server)
    monkeypatch.setattr(sessions, "_MOST_NAMES", 1)
    relations, limits = named(server)
    assert Counter(relation.database for relation in relations) == {"": 1, "shop": 1, "eu.shop": 1}
    assert len(every) > len(relations)
    (told,) = [each for each in limits if "only the 1 largest" in each]
    assert number_of(server, "shop") in told


def test_another_server_behind_a_pooler_gives_no_names(
    server: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of files repeat between servers, so that its names would be given to wrong files."""
    connect = PostgresSession.__init__

    def misled(self: PostgresSession, dsn: str, database: str | None = None) -> None:
        connect(self, dsn, "eu.shop" if database == "shop" else database)

    monkeypatch.setattr(PostgresSession, "__init__", misled)
    relations, limits = named(server)
    assert {relation.database for relation in relations} == {"", "eu.shop"}
    told = f"oid {number_of(server, 'shop')} have no names: the DSN leads to another server or database there"
    assert any(limit.endswith(told) for limit in limits)


def test_a_dsn_that_fails_for_its_own_database_is_an_error(server: PostgresEngine) -> None:
    with closing(PostgresSession(dsn_of(server).text)) as session:
        session.close()
        with pytest.raises(SqlReadError):
            session.relations()
