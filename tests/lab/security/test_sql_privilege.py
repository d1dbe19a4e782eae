"""What a stranger's SQL can reach: no superuser of a server, and nothing that a superuser evaluates."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from support.embedded_adapter import open_in
from support.engine_contract import open_directory, places_in
from support.engine_sessions import client_of, root_of, superuser_dsn
from tierwise import _core
from tierwise.capture.observe import observe_server
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.sql_session import parse_dsn
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine, ResourceLimits
from tierwise.lab.engines.engine_documentation import SalvageStep
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.engines.postgres.server import PORT
from tierwise.lab.engines.sqlite.adapter import SqliteAdapter
from tierwise.lab.engines.sqlite.engine import SqliteEngine
from tierwise.lab.validation import servers
from tierwise.lab.validation.clients.server_jobs import MariadbJob, PostgresJob
from tierwise.lab.validation.clients.validation_client import run_client_program
from tierwise.lab.validation.servers.mariadb import DebianMariadb
from tierwise.lab.validation.servers.postgres import DebianPostgres
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

LONG_AGO = SalvageStep(
    step="x", roles=[Role.INDEX], statements=["CREATE TABLE whose (a integer)"], source="x"
)


def started(name: str, directory: Path) -> Engine:
    try:
        engine = engines.create_engine(name)
    except TierwiseError as error:
        pytest.skip(str(error))
    engine.init(places_in(directory, engine.roles))
    engine.start()
    return engine


@pytest.fixture(params=["postgres", "postgres-system"])
def postgres(request: pytest.FixtureRequest) -> Iterator[PostgresEngine]:
    with open_directory() as directory, started(request.param, directory) as made:
        assert isinstance(made, PostgresEngine)
        yield made


@pytest.fixture
def mariadb() -> Iterator[MariadbEngine]:
    with open_directory() as directory, started("mariadb", directory) as made:
        assert isinstance(made, MariadbEngine)
        yield made


@pytest.fixture
def planted() -> Iterator[Path]:
    """A file that any account could make."""
    with open_directory() as directory:
        directory.chmod(0o777)
        yield directory / "planted"


def look_after(engine: Engine) -> None:
    """All that tierwise does with sessions of its own."""
    for _ in range(2):
        engine.counters()
        engine.settings()
        engine.checkpoint()
        engine.role_of(engine.directories[Role.SYSTEM] / "base" / "5" / "99999")
        sampler = engine.sampler()
        sampler.start()
        time.sleep(0.1)
        sampler.stop()
        engine.restart_cold()


# PostgreSQL: the schema's own session


@pytest.mark.parametrize(
    "attack",
    [
        "COPY (SELECT 1) TO PROGRAM 'touch {planted}'",
        "DO $$ BEGIN EXECUTE 'RESET SESSION AUTHORIZATION'; "
        "EXECUTE $x$ COPY (SELECT 1) TO PROGRAM 'touch {planted}' $x$; END $$",
        "SELECT lo_export(lo_from_bytea(0, 'x'), '{planted}')",
        "SELECT pg_read_file('/etc/passwd')",
        "CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE EXTENSION dblink",
        "CREATE EXTENSION file_fdw",
        "CREATE ROLE another SUPERUSER",
        "ALTER ROLE tierwise_client SUPERUSER",
        "ALTER ROLE tierwise SET search_path = public",
        "ALTER SYSTEM SET archive_command = 'touch {planted}'",
        "ALTER DATABASE postgres SET session_preload_libraries = 'mine'",
        "ALTER DATABASE template1 RENAME TO mine",
        "CREATE FUNCTION mine() RETURNS integer LANGUAGE C AS '/tmp/mine.so', 'mine'",
        "LOAD '/tmp/mine.so'",
        "SET local_preload_libraries = 'mine'; SET SESSION AUTHORIZATION tierwise",
    ],
)
def test_a_schema_takes_no_superuser_of_postgresql(
    postgres: PostgresEngine, planted: Path, attack: str
) -> None:
    with contextlib.suppress(TierwiseError):
        postgres.execute_schema([(Role.DATA, "RESET SESSION AUTHORIZATION")])
    with pytest.raises(TierwiseError, match=r"(?i)permission|superuser|must be owner|not allowed"):
        postgres.execute_schema(
            [(Role.DATA, "RESET SESSION AUTHORIZATION"), (Role.DATA, attack.format(planted=planted))]
        )
    assert not planted.exists()


def test_the_loads_account_is_what_runs_each_phase(postgres: PostgresEngine) -> None:
    whose = "SELECT session_user::text || ' ' || current_user::text"
    for name in ("schema", "after_load"):
        postgres.execute_schema([(Role.DATA, f"CREATE TABLE {name} AS {whose} AS who")])
    postgres.make_commit_tables(1)
    postgres.start_salvaged(LONG_AGO)
    with psycopg.connect(postgres.dsn()) as connection:
        owners = connection.execute(
            "SELECT relname, relowner::regrole::text FROM pg_class WHERE oid >= 16384 AND relkind = 'r'"
        ).fetchall()
        rows = {connection.execute(f"SELECT who FROM {name}".encode()).fetchone() for name in
                ("schema", "after_load")}  # fmt: skip
    assert dict(owners) == dict.fromkeys(["schema", "after_load", "done", "item", "whose"], "tierwise_client")
    assert rows == {("tierwise_client tierwise_client",)}


# PostgreSQL: what tierwise's own sessions evaluate

SHADOW = """
    CREATE FUNCTION public.act() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        EXECUTE $x$ COPY (SELECT 1) TO PROGRAM 'touch {planted}' $x$;
        EXCEPTION WHEN insufficient_privilege THEN NULL;
    END $$
"""
SHADOWS = {
    "a function that fits better": [
        """CREATE FUNCTION public.pg_relation_filenode(oid) RETURNS oid LANGUAGE plpgsql AS $$ BEGIN
               PERFORM public.act(); RETURN pg_catalog.pg_relation_filenode($1); END $$""",
    ],
    "an operator that fits better": [
        """CREATE FUNCTION public.at_least(oid, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
               PERFORM public.act(); RETURN pg_catalog.oidge($1, $2::oid); END $$""",
        "CREATE OPERATOR public.>= (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.at_least)",
    ],
    "a function first in the search path": [
        """CREATE FUNCTION public.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
               PERFORM public.act(); RETURN pg_catalog.current_setting($1, $2); END $$""",
        "{path}",
    ],
    "a view first in the search path": [
        """CREATE FUNCTION public.acted(integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
               PERFORM public.act(); RETURN $1; END $$""",
        """CREATE VIEW public.pg_settings AS
               SELECT name FROM pg_catalog.pg_settings WHERE public.acted(1) = 1""",
        "{path}",
    ],
}
PATHS = {
    "set": "SET search_path = public, pg_catalog",
    "database": "ALTER DATABASE postgres SET search_path = public, pg_catalog",
    "role": "ALTER ROLE CURRENT_USER SET search_path = public, pg_catalog",
}


@pytest.mark.parametrize(
    ("shadow", "path"),
    [
        (shadow, path)
        for shadow, made in SHADOWS.items()
        for path in (PATHS if "{path}" in made else ["none"])
    ],
)
def test_no_superuser_evaluates_what_a_schema_made(
    postgres: PostgresEngine, planted: Path, shadow: str, path: str
) -> None:
    for statement in ["CREATE TABLE t (a integer)", SHADOW, *SHADOWS[shadow]]:
        sql = statement.replace("{planted}", str(planted)).replace("{path}", PATHS.get(path, ""))
        with contextlib.suppress(TierwiseError):  # the search path of the database, which is not its own
            postgres.execute_schema([(Role.DATA, sql)])
    look_after(postgres)
    assert not planted.exists()


def test_no_superuser_is_in_the_loads_database(postgres: PostgresEngine) -> None:
    sampler = postgres.sampler()
    sampler.start()
    postgres.execute_schema([(Role.DATA, "CREATE TABLE t (a integer)")])
    with psycopg.connect(postgres.dsn()) as connection:
        rows = connection.execute(
            "SELECT datname, usename FROM pg_stat_activity WHERE datname <> '' AND usename <> ''"
        ).fetchall()
    sampler.stop()
    assert {user for database, user in rows if database == "postgres"} == {"tierwise_client"}
    assert ("template1", "tierwise") in rows


def test_a_superusers_session_looks_names_up_in_the_catalogue_alone(postgres: PostgresEngine) -> None:
    with psycopg.connect(superuser_dsn(postgres), autocommit=True) as connection:
        connection.execute("ALTER DATABASE template1 SET search_path = public")
        connection.execute("ALTER ROLE tierwise SET search_path = public")
    postgres.restart_cold()
    server = postgres._known_process()
    assert server.query("SHOW search_path") == [("pg_catalog",)]


def test_the_loads_account_cannot_enter_the_superusers_database(postgres: PostgresEngine) -> None:
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(postgres.dsn().replace("dbname=postgres", "dbname=template1"))


def test_the_superuser_has_a_password_of_its_own(postgres: PostgresEngine) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.dsn().replace("user=tierwise_client", "user=tierwise"))


def test_the_check_of_the_files_needs_no_superuser(postgres: PostgresEngine, planted: Path) -> None:
    postgres.execute_schema(
        [
            (Role.DATA, SHADOW.format(planted=planted)),
            (
                Role.DATA,
                """CREATE FUNCTION public.verify_heapam(regclass) RETURNS TABLE (blkno bigint, msg text)
                   LANGUAGE plpgsql AS $$ BEGIN PERFORM public.act(); END $$""",
            ),
            (
                Role.DATA,
                """CREATE FUNCTION public.keyed(integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql
                   AS $$ BEGIN PERFORM public.act(); RETURN $1; END $$""",
            ),
        ]
    )
    postgres.make_commit_tables(1)
    postgres.execute_schema([(Role.INDEX, "CREATE INDEX keyed ON item (public.keyed(number))")])
    check = postgres.check()
    assert check.problems == []
    assert check.name.startswith(("amcheck", "full read"))
    assert not planted.exists()


def test_a_schema_may_still_do_what_is_its_own(postgres: PostgresEngine) -> None:
    postgres.execute_schema(
        [
            (Role.DATA, "CREATE SCHEMA sales"),
            (Role.DATA, "CREATE TYPE sales.kind AS ENUM ('a', 'b')"),
            (Role.DATA, "CREATE DOMAIN sales.positive AS integer CHECK (VALUE > 0)"),
            (Role.DATA, "CREATE TABLE sales.t (a sales.positive PRIMARY KEY, k sales.kind)"),
            (Role.DATA, "CREATE TEMPORARY TABLE s AS SELECT 1 AS a"),
            (Role.DATA, "INSERT INTO sales.t SELECT a, 'a' FROM s"),
            (Role.INDEX, "CREATE INDEX ON sales.t (k)"),
            (Role.DATA, "CREATE EXTENSION IF NOT EXISTS pg_trgm"),
            (
                Role.DATA,
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
            ),
            (Role.DATA, "CREATE TRIGGER tr BEFORE INSERT ON sales.t FOR EACH ROW EXECUTE FUNCTION f()"),
            (Role.DATA, "DO $$ BEGIN PERFORM 1; END $$"),
            (Role.DATA, "ALTER ROLE CURRENT_USER SET work_mem = '1MB'"),
            (Role.DATA, "VACUUM ANALYZE sales.t"),
            (Role.DATA, "COMMENT ON SCHEMA public IS 'mine'"),
        ]
    )


# A server that others use: the counters' DSN may be an administrator's


@pytest.fixture
def used() -> Iterator[PostgresEngine]:
    with open_directory() as directory, started("postgres", directory) as made:
        assert isinstance(made, PostgresEngine)
        yield made


def asleep(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_sleep(5)")


@pytest.mark.parametrize("read", ["counters", "observe"])
def test_an_administrators_dsn_evaluates_nothing_of_others(
    used: PostgresEngine, planted: Path, tmp_path: Path, read: str
) -> None:
    with psycopg.connect(superuser_dsn(used), autocommit=True) as connection:
        connection.execute(PATHS["database"].encode())  # as the owner of a production database may
    used.execute_schema(
        [
            (Role.DATA, SHADOW.format(planted=planted)),
            (
                Role.DATA,
                """CREATE FUNCTION public.acted(bigint) RETURNS bigint LANGUAGE plpgsql
                   AS $$ BEGIN PERFORM public.act(); RETURN $1; END $$""",
            ),
            (
                Role.DATA,
                "CREATE VIEW public.pg_stat_database AS SELECT * FROM pg_catalog.pg_stat_database "
                "WHERE public.acted(xact_commit) >= 0",
            ),
        ]
    )
    if read == "counters":
        with contextlib.closing(PostgresSession(superuser_dsn(used))) as session:
            counted = session.read()
        assert counted.counts["commits"] > 0
    else:
        acting = threading.Thread(target=lambda: asleep(used.dsn()))
        acting.start()
        observe_server(parse_dsn(superuser_dsn(used), "test"), tmp_path / "o", 0.5, cores=2)
        acting.join()
    assert not planted.exists()


# MariaDB


@pytest.mark.parametrize(
    "attack",
    [
        "CREATE TABLE mysql.planted (a integer)",
        "CREATE DATABASE another",
        "SELECT 1 INTO OUTFILE '{planted}'",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
        "INSTALL SONAME 'ha_archive'",
        "INSTALL PLUGIN mine SONAME 'mine.so'",
        "CREATE FUNCTION mine RETURNS integer SONAME 'mine.so'",
        "SET GLOBAL general_log_file = '{planted}'",
        "SET GLOBAL event_scheduler = ON",
        "CREATE DEFINER = root@localhost PROCEDURE mine() SELECT 1 INTO OUTFILE '{planted}'",
        "CREATE DEFINER = root@localhost FUNCTION mine() RETURNS integer RETURN 1",
        "CREATE DEFINER = root@localhost VIEW mine AS SELECT 1",
        "CREATE DEFINER = root@localhost TRIGGER mine BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE DEFINER = root@localhost EVENT mine ON SCHEDULE EVERY 1 SECOND DO SELECT 1",
        "CREATE USER another",
        "GRANT ALL ON *.* TO tierwise_client@localhost",
        "SET PASSWORD FOR root@localhost = PASSWORD('mine')",
        "SELECT * FROM mysql.global_priv",
        "SHUTDOWN",
    ],
)
def test_a_schema_takes_no_root_of_mariadb(mariadb: MariadbEngine, planted: Path, attack: str) -> None:
    mariadb.execute_schema([(Role.DATA, "CREATE TABLE t (a text)")])
    with pytest.raises(TierwiseError, match=r"(?i)denied"):
        mariadb.execute_schema([(Role.DATA, attack.format(planted=planted))])
    assert not planted.exists()


def test_a_schema_of_mariadb_reads_no_file(mariadb: MariadbEngine) -> None:
    mariadb.execute_schema(
        [(Role.DATA, "CREATE TABLE stolen AS SELECT load_file('/etc/passwd') IS NULL AS safe")]
    )
    with client_of(mariadb) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT safe FROM stolen")
        assert cursor.fetchone() == (1,)
    with pytest.raises(TierwiseError, match="local infile"):
        mariadb.execute_schema([(Role.DATA, "LOAD DATA LOCAL INFILE '/etc/shadow' INTO TABLE stolen")])
    with pytest.raises(TierwiseError, match=r"(?i)local"):
        clients = mariadb.clients(program("LOAD DATA LOCAL INFILE '/etc/shadow' INTO TABLE stolen"), 1, 1)
        clients.run(transactions=1)


def test_root_of_mariadb_is_in_no_schema(mariadb: MariadbEngine) -> None:
    mariadb.execute_schema([(Role.DATA, "CREATE TABLE t (a integer)")])
    sampler = mariadb.sampler()
    sampler.start()
    with root_of(mariadb) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT user, db FROM information_schema.processlist WHERE user LIKE 'root%' OR db <> ''"
        )
        rows = cursor.fetchall()
    sampler.stop()
    assert {database for user, database in rows if user == "root"} == {None}
    assert {user for user, database in rows if database is not None} == {"tierwise_client"}


def test_the_loads_account_is_what_runs_each_phase_in_mariadb(mariadb: MariadbEngine) -> None:
    mariadb.execute_schema([(Role.DATA, "CREATE TABLE whose AS SELECT current_user() AS who")])
    with contextlib.closing(mariadb.commit_session()) as session:
        rows = session._execute("SELECT who, current_user() FROM whose")  # type: ignore[attr-defined]
    assert rows == [("tierwise_client@localhost", "tierwise_client@localhost")]


def test_root_of_mariadb_has_a_password_of_its_own(mariadb: MariadbEngine) -> None:
    words = dict(word.split("=", 1) for word in mariadb._known_process().address.split())
    with pytest.raises(pymysql.OperationalError, match=r"(?i)denied"):
        pymysql.connect(unix_socket=words["socket"], user="root", password=words["password"])


def test_a_schema_of_mariadb_may_still_do_what_is_its_own(mariadb: MariadbEngine) -> None:
    statements = [
        "CREATE TABLE `a``b` (a integer PRIMARY KEY)",
        "CREATE FUNCTION twice(a integer) RETURNS integer RETURN 2 * a",
        "CREATE PROCEDURE p() INSERT INTO `a``b` VALUES (twice(3))",
        "CREATE TRIGGER tr BEFORE INSERT ON `a``b` FOR EACH ROW SET NEW.a = NEW.a + 1",
        "CREATE VIEW v AS SELECT a FROM `a``b`",
        "CREATE TEMPORARY TABLE s AS SELECT 1 AS a",
        "INSERT INTO `a``b` SELECT a FROM s",
        "CALL p()",
        "OPTIMIZE TABLE `a``b`",
    ]
    mariadb.execute_schema([(Role.DATA, sql) for sql in statements])
    assert mariadb._known_process().client.query("SELECT count(*) FROM `a``b`") == [(2,)]
    look_after(mariadb)


# SQLite


def program(sql: str) -> str:
    step = {"repeat": 1, "draw": [], "sql": [sql], "sum": None}
    transaction = {"name": "only", "weight": 1, "autocommit": True, "steps": [step]}
    return json.dumps(
        {"name": "x", "think_ms": 0, "tables": [], "parameters": [], "transactions": [transaction]}
    )


@pytest.mark.parametrize("statement", ["ATTACH '{uri}' AS other", "VACUUM INTO '{uri}'"])
@pytest.mark.parametrize("parameters", ["?vfs=unix", "?vfs=unix-none&mode=rwc"])
@pytest.mark.parametrize("way", ["schema", "client"])
def test_sqlite_itself_refuses_another_vfs(tmp_path: Path, way: str, statement: str, parameters: str) -> None:
    """In this process: there is no Landlock in the way."""
    adapter: Any = open_in(SqliteAdapter(), tmp_path, SqliteEngine.roles, {}, ResourceLimits())
    sql = statement.format(uri=f"file:{tmp_path}/planted{parameters}")
    with pytest.raises(Exception, match="unable to open"):
        if way == "schema":
            adapter.execute(sql)
        else:
            _core.Clients(*adapter.driver(), program(sql), 1, 1).run(transactions=1)
    adapter.close()
    assert not (tmp_path / "planted").exists()


# Servers of a validation


def a_server(name: str) -> Any:
    if (missing := servers.missing_package(name)) is not None:
        pytest.skip(missing)
    return servers.create_database(name, name, {})


def test_a_client_program_is_no_superuser_of_postgresql(planted: Path, tmp_path: Path, run_dir: Path) -> None:
    server: DebianPostgres = a_server("postgres")
    job = PostgresJob({}, 1)

    def prepare() -> None:
        with pytest.raises(TierwiseError, match=r"permission denied|must be superuser"):
            job._psql(server, [f"COPY (SELECT 1) TO PROGRAM 'touch {planted}'"])
        with pytest.raises(TierwiseError, match=r"(?i)authentication failed|no pg_hba"):
            login = ["-h", server.home, "-p", str(PORT), "-U", "postgres", "-c", "SELECT 1", "postgres"]
            run_client_program("psql", [server.bin / "psql", *login], server)
        job.prepare(server)

    try:
        server.make(prepare, tmp_path)
    finally:
        server.remove()
    assert not planted.exists()


def test_a_client_program_is_no_root_of_mariadb(tmp_path: Path, run_dir: Path) -> None:
    server: DebianMariadb = a_server("mariadb")
    job = MariadbJob({}, 1)

    def prepare() -> None:
        for attack in ("CREATE TABLE mysql.planted (a integer)", "SET GLOBAL general_log = ON"):
            with pytest.raises(TierwiseError, match=r"(?i)denied"):
                job._shell(server, [attack])
        with pytest.raises(TierwiseError, match=r"(?i)secure.file.priv"):
            job._shell(server, ["SELECT 1 INTO OUTFILE '/tmp/planted'"])
        with pytest.raises(TierwiseError, match=r"(?i)denied"):
            login = ["--no-defaults", f"--socket={server.socket}", "--user=root", "-e", "SELECT 1"]
            run_client_program("mariadb", ["mariadb", *login], server)
        job.prepare(server)

    try:
        server.make(prepare, tmp_path)
    finally:
        server.remove()
