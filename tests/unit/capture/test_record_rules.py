"""Rules: every engine's own files have their roles, as the engine's adapter gives them too."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from tierwise import _core
from tierwise.capture import target
from tierwise.lab.engines.embedded import worker
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA


@pytest.mark.parametrize(
    ("program", "rules", "refused"),
    [
        ("mariadbd", "postgres", True),
        ("postgres", "mariadb", True),
        ("mysqld", "mariadb", False),
        ("mysqld", "rocksdb", False),
        ("database", "postgres", False),
    ],
)
def test_rules_of_another_server_are_refused(
    monkeypatch: pytest.MonkeyPatch, program: str, rules: str, refused: bool
) -> None:
    monkeypatch.setattr(target, "program_of_process", lambda _: program)
    monkeypatch.setattr(target, "refuse_client_process", lambda *_: None)
    monkeypatch.setattr(_core, "require_first", lambda *_: None)
    given = target.load_rules(rules)
    if refused:
        with pytest.raises(TierwiseError, match=f"--rules: those of {rules} are given, and {program}"):
            target.target_of_process(os.getpid(), given)
    else:
        assert target.target_of_process(os.getpid(), given).pid == os.getpid()


@pytest.mark.parametrize(
    ("rules", "file", "engine"),
    [
        ("mariadb", "mysql.ibd", "mysql"),
        ("mariadb", "undo_001", "mysql"),
        ("mariadb", "undo001", "mariadb"),
        ("postgres", "undo_001", "postgres"),
    ],
)
def test_mysql_is_not_called_mariadb(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rules: str, file: str, engine: str
) -> None:
    given = target.load_rules(rules)
    monkeypatch.setattr(target, "program_of_process", lambda _: given.programs[0])
    monkeypatch.setattr(target, "refuse_client_process", lambda *_: None)
    monkeypatch.setattr(_core, "require_first", lambda *_: None)
    with (tmp_path / file).open("w"):
        assert target.target_of_process(os.getpid()).engine == engine


@pytest.mark.parametrize(
    ("thread", "kind"),
    [
        ("ib_log_writer", "log_writer"),
        ("ib_log_flush", "log_writer"),
        ("ib_log_checkpt", "other"),
        ("ib_log_files_g", "other"),
    ],
)
def test_log_writers_of_mysql_are_told_from_its_checkpointer(thread: str, kind: str) -> None:
    lines = tomllib.loads((DATA / "rules" / "mariadb.toml").read_text("utf-8"))["thread"]
    named = next(line for line in lines if re.search(line.get("thread", ""), thread))
    assert named["class"] == kind


_FILES = {
    "postgres": {
        "/data/pg_wal/000000010000000000000001": "log",
        "/elsewhere/000000010000000A000000FF": "log",
        "/data/base/5/16390": "data",
        "/data/base/5/16390_fsm": "data",
        "/data/base/5/16390.1": "data",
        "/data/base/5/1259": "system",
        "/data/base/5/16383": "system",
        "/data/pg_tblspc/16384/PG_18_202506291/5/16400": "data",
        "/data/base/5/t3_16500": "temp",
        "/data/base/pgsql_tmp/pgsql_tmp77.0": "temp",
        "/data/pg_xact/0000": "system",
        "/data/global/pg_control": "system",
        "/usr/lib/postgresql/15/bin/postgres": None,
        "/etc/passwd": None,
    },
    "mariadb": {
        "/var/lib/mysql/ib_logfile0": "log",
        "/var/lib/mysql/ibdata1": "system",
        "/var/lib/mysql/undo001": "undo",
        "/var/lib/mysql/mysql-bin.000001": "archive",
        "/var/lib/mysql/ibtmp1": "temp",
        "/tmp/#sql-temptable-a-b-c.MAD": "temp",
        "/var/lib/mysql/shop/orders.ibd": "data",
        "/var/lib/mysql/mysql/user.ibd": "system",
        "/var/lib/mysql/shop/orders.frm": "system",
        "/usr/sbin/mariadbd": None,
    },
    "sqlite": {
        "/srv/app.db": "data",
        "/srv/app.db-wal": "log",
        "/srv/app.db-journal": "doublewrite",
        "/srv/app.db-shm": "system",
        "/var/tmp/etilqs_0123456789abcdef": "temp",
        "/srv/tierwise.wal": "log",
    },
    "rocksdb": {
        "/db/000012.log": "log",
        "/db/000013.sst": "data",
        "/db/MANIFEST-000005": "system",
        "/db/LOG": "system",
    },
    "duckdb": {
        "/db/my.duckdb": "data",
        "/db/my.duckdb.wal": "log",
        "/db/my.duckdb.tmp/duckdb_temp_storage_DEFAULT-0.tmp": "temp",
    },
    "oracle": {
        "/u02/oradata/ORCL/redo01.log": "log",
        "/u02/oradata/ORCL/users01.dbf": "data",
        "/u02/oradata/ORCL/undotbs01.dbf": "undo",
        "/u02/oradata/ORCL/temp01.dbf": "temp",
        "/u02/oradata/ORCL/control01.ctl": "system",
    },
    "sqlserver": {
        "/var/opt/mssql/data/shop.mdf": "data",
        "/var/opt/mssql/data/shop_log.ldf": "log",
        "/var/opt/mssql/data/tempdb.mdf": "temp",
        "/var/opt/mssql/data/templog.ldf": "temp",
        "/var/opt/mssql/data/master.mdf": "system",
    },
    "ase": {"/sybase/data/shop_log.dat": "log", "/sybase/data/shop.dat": "data"},
    "versant": {"/vod/db/shop/logical.log": "log", "/vod/db/shop/physical.log": "doublewrite"},
}


def test_every_engine_has_its_cases() -> None:
    assert sorted(_FILES) == target.engines_with_rules()


@pytest.mark.parametrize("engine", _FILES)
def test_files_have_their_roles(engine: str) -> None:
    known = target.load_rules(engine)
    roles = {path: known.role_of(path) for path in _FILES[engine]}
    assert roles == _FILES[engine]


@pytest.mark.parametrize("engine", _FILES)
def test_what_nobody_tried_says_so(engine: str) -> None:
    untested = {"oracle", "sqlserver", "ase", "versant"}
    warnings = target.load_rules(engine).warnings(False)
    assert bool(warnings) == (engine in untested)


def test_roles_that_names_do_not_tell_are_named() -> None:
    known = target.load_rules("postgres")
    assert "role index count as data" in known.warnings(True)[0]
    assert known.warnings(False) == []


def test_programs_name_their_engine() -> None:
    of_program = target.find_rules_of_program("postgres")
    assert of_program is not None
    assert of_program.engine == "postgres"
    assert target.find_rules_of_program("bash") is None


@pytest.mark.parametrize("engine", ["sqlite", "rocksdb", "duckdb"])
def test_threads_of_a_worker_that_are_no_clients_are_background(engine: str) -> None:
    assert class_of(engine, f"from {worker.__name__} import main; main()", "python3") == "background"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("postgres eventlogger [local] idle", "session"),
        ("logger startup 10.0.0.1(5432) SELECT", "session"),
        ("main: walwriter bench ::1(5432) COMMIT", "session"),
        ("postgres bench [local] startup", "session"),
        ("walsender repl [local] streaming 0/C000060", "background"),
        ("main: walsender repl bench 10.0.0.1(5432) START_REPLICATION", "background"),
        ("main: startup recovering 00000001000000000000000C", "background"),
        ("logical replication apply worker for subscription 16394", "background"),
        ("autovacuum worker bench", "background"),
        ("logger", "background"),
        ("main: walwriter", "log_writer"),
    ],
)
def test_titles_of_postgres_tell_sessions_whatever_their_database_is_called(
    title: str, expected: str
) -> None:
    assert class_of("postgres", f"postgres: {title}", "postgres") == expected


def class_of(engine: str, command: str, thread: str) -> str:
    """Class of a thread by the shipped rules."""
    rules = tomllib.loads((DATA / "rules" / f"{engine}.toml").read_text("utf-8"))["thread"]
    matching = (
        rule["class"]
        for rule in rules
        if re.search(rule.get("command", ""), command) and re.search(rule.get("thread", ""), thread)
    )
    return str(next(matching))


def test_an_unknown_engine_is_told_with_the_nearest() -> None:
    with pytest.raises(TierwiseError, match=r"'postgre'.*did you mean postgres"):
        target.load_rules("postgre")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        """
        engine = "own"
        source = "me"
        programs = []
        file = [{ path = '\\.log$', role = "log" }]
        """
    )
    assert target.load_rules(str(own)).role_of("/x/1.log") == "log"
    own.write_text("engine = 1")
    with pytest.raises(TierwiseError, match=r"own\.toml"):
        target.load_rules(str(own))
    own.write_bytes(b"\xff\xfe")
    with pytest.raises(TierwiseError, match=r"own\.toml.*not UTF-8"):
        target.load_rules(str(own))
    with pytest.raises(TierwiseError, match="No such file"):
        target.load_rules(str(tmp_path / "none.toml"))
