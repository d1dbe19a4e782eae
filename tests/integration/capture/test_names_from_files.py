"""Names of PostgreSQL's tables and indexes from the server's files are those that the server gives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.engine_sessions import superuser_dsn
from support.watched_servers import administrator, dsn_of, watched_postgres
from tierwise.capture.postgres_names import RelationNames, read_names_as_server_user
from tierwise.capture.postgres_session import PostgresSession
from tierwise.capture.target import target_of_process
from tierwise.host.page_cache import resident_bytes
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.recording.relations import Relation

SCHEMA = (
    'CREATE SCHEMA "a.b"',
    'CREATE TABLE "a.b"."t.u" (id integer PRIMARY KEY)',
    "CREATE TABLE orders (id integer, at date) PARTITION BY RANGE (at)",
    "CREATE TABLE early PARTITION OF orders FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') "
    "PARTITION BY RANGE (at)",
    "CREATE TABLE earliest PARTITION OF early FOR VALUES FROM ('2020-01-01') TO ('2020-07-01')",
    "CREATE INDEX ON orders (id)",
    "CREATE TABLE large (id integer PRIMARY KEY, document text)",
    "ALTER TABLE large ALTER document SET STORAGE external",
    "INSERT INTO large SELECT n, repeat('abc', 4000) FROM generate_series(1, 100) n",
    "CREATE MATERIALIZED VIEW recent AS SELECT * FROM large",
    "CREATE TABLE elsewhere (id integer PRIMARY KEY) TABLESPACE fast",
    "CREATE TABLE moved (id integer PRIMARY KEY, text text)",
    "ALTER TABLE moved SET TABLESPACE fast",
    'CREATE TABLE "Bücher" (id integer)',
    "CREATE TABLE dropped (id integer)",
    "DROP TABLE dropped",
    "CREATE TABLE parent (id integer)",
    "CREATE TABLE child () INHERITS (parent)",
)
CHANGES = (
    "ALTER TABLE large RENAME TO huge",
    "VACUUM FULL huge",
    "TRUNCATE earliest",
    'REINDEX TABLE "a.b"."t.u"',
    "CLUSTER elsewhere USING elsewhere_pkey",
    "VACUUM FULL pg_class",
    "VACUUM FULL pg_index",
    "BEGIN; ALTER TABLE orders RENAME TO never; CREATE TABLE never_made (id integer); ROLLBACK",
    "BEGIN; SAVEPOINT a; CREATE TABLE of_savepoint (id integer); RELEASE a; COMMIT",
)


def session_of(server: PostgresEngine, database: str) -> psycopg.Connection[Any]:
    address = psycopg.conninfo.make_conninfo(superuser_dsn(server), dbname=database)
    return psycopg.connect(address, autocommit=True)


def run(server: PostgresEngine, database: str, *statements: str) -> None:
    with session_of(server, database) as session:
        for statement in statements:
            session.execute(statement.encode())


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresEngine]:
    """Two databases beside the load's, one of them in a tablespace."""
    with watched_postgres() as made:
        directory = data_directory(made) / "spaces" / "fast"
        owner = data_directory(made).stat()
        for path in (directory.parent, directory):
            path.mkdir(mode=0o700)
            os.chown(path, owner.st_uid, owner.st_gid)
        with administrator(made) as session:
            session.execute(f"CREATE TABLESPACE fast LOCATION '{directory}'".encode())
            session.execute("CREATE DATABASE shop TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
            session.execute("CREATE DATABASE far TEMPLATE template0 TABLESPACE fast")
        run(made, "shop", *SCHEMA)
        run(
            made,
            "far",
            "CREATE TABLE at_home (id integer PRIMARY KEY)",
            "CREATE TABLE away (id integer) TABLESPACE pg_default",
        )
        yield made


def data_directory(server: PostgresEngine) -> Path:
    return Path(f"/proc/{server.server_pid}/cwd").readlink()


def number_of(server: PostgresEngine, database: str) -> int:
    with administrator(server) as session:
        ((number,),) = session.execute(
            "SELECT oid FROM pg_database WHERE datname = %s", [database]
        ).fetchall()
    return int(str(number))


def by_files(server: PostgresEngine) -> RelationNames:
    return read_names_as_server_user(target_of_process(server.server_pid or 0))


def named(rows: list[dict[str, Any]]) -> dict[str, Relation]:
    return {row["path"]: Relation.model_validate(row) for row in rows}


def by_sql(server: PostgresEngine) -> dict[str, Relation]:
    """The same with its database for each, as there is no connected one."""
    with closing(PostgresSession(dsn_of(server).text)) as session:
        rows = session.relations()
    with administrator(server) as administrators:
        ((connected,),) = administrators.execute("SELECT current_database()").fetchall()
    return named([{**row, "database": row["database"] or connected} for row in rows])


def test_names_are_those_of_the_server(server: PostgresEngine) -> None:
    run(server, "shop", "CHECKPOINT")
    files = by_files(server)
    relations = named(files.relations)
    assert relations == by_sql(server)
    kinds = {relation.kind for relation in relations.values()}
    assert kinds == {"table", "index", "toast", "materialized view"}
    assert {relation.database for relation in relations.values()} >= {"shop", "far"}
    paths = {relation.name: path for path, relation in relations.items()}
    assert paths["public.elsewhere"].startswith("pg_tblspc/")
    assert len(files.warnings) == 1
    assert "as of its checkpoint of 2" in files.warnings[0]


def test_rewritten_and_renamed_tables_have_their_new_names(server: PostgresEngine) -> None:
    run(server, "shop", *CHANGES, "CHECKPOINT")
    relations = named(by_files(server).relations)
    assert relations == by_sql(server)
    names = {relation.name for relation in relations.values()}
    assert {"public.huge", "public.of_savepoint"} <= names
    assert not names & {"public.large", "public.never", "public.never_made"}


def test_what_is_not_committed_has_no_name(server: PostgresEngine) -> None:
    before = by_sql(server)
    with session_of(server, "shop") as session, session.transaction():
        session.execute("ALTER TABLE moved RENAME TO uncertain")
        session.execute("CREATE TABLE unborn (id integer)")
        run(server, "far", "CHECKPOINT")
        files = by_files(server)
        names = {relation.name for relation in named(files.relations).values()}
        assert not names & {"public.moved", "public.uncertain", "public.unborn"}
        assert named(files.relations).items() <= before.items()
        assert "have no name here" in files.warnings[1]


def test_the_page_cache_is_as_before(server: PostgresEngine) -> None:
    run(server, "shop", "CHECKPOINT")
    with session_of(server, "shop") as session:
        ((path,),) = session.execute("SELECT pg_relation_filepath('pg_class')").fetchall()
    file = data_directory(server) / path
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(opened.fileno(), 8192, 16384)
    before = resident_bytes(file)
    if before == file.stat().st_size:
        pytest.skip("the file system keeps all pages, as one in memory does")
    assert by_files(server).relations
    assert resident_bytes(file) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than the server's user")
def test_what_the_servers_user_may_not_read_is_not_read(server: PostgresEngine, tmp_path: Path) -> None:
    """A link in the data directory leads to no file of root's."""
    run(server, "shop", "CHECKPOINT")
    directory = data_directory(server) / "base" / str(number_of(server, "shop"))
    kept = directory.with_name("kept")
    shutil.copytree(directory, tmp_path / "roots")
    tmp_path.chmod(0o700)
    directory.rename(kept)
    try:
        directory.symlink_to(tmp_path / "roots")
        files = by_files(server)
    finally:
        directory.unlink()
        kept.rename(directory)
    assert "shop" not in {relation["database"] for relation in files.relations}
    assert "Permission denied" in " ".join(files.warnings)


def test_a_catalog_that_is_damaged_gives_no_names(server: PostgresEngine) -> None:
    run(server, "shop", "CHECKPOINT")
    number = number_of(server, "shop")
    mapping = data_directory(server) / "base" / str(number) / "pg_filenode.map"
    kept = mapping.with_suffix(".kept")
    mapping.rename(kept)
    try:
        mapping.symlink_to(kept)
        linked = by_files(server)
        mapping.unlink()
        mapping.write_bytes(kept.read_bytes()[:8].ljust(512, b"\1"))
        os.chown(mapping, kept.stat().st_uid, kept.stat().st_gid)
        damaged = by_files(server)
    finally:
        kept.rename(mapping)
    for files in (linked, damaged):
        assert "shop" not in {relation["database"] for relation in files.relations}
        assert "far" in {relation["database"] for relation in files.relations}
        assert f"pg_database.oid {number} have no names" in " ".join(files.warnings)


def test_files_that_take_much_memory_give_no_names() -> None:
    """Pages whose pointers lead to one row took gigabytes."""
    code = (
        "from tierwise.capture import postgres_files as files\n"
        "files.read_all_names = lambda _: bytearray(8 << 30)\n"
        "files.main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "0"], capture_output=True, text=True, check=False)
    assert "1024 MiB of memory" in json.loads(done.stdout)["problem"]
