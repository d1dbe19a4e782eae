"""What strangers try: other users of the machine, and workloads on servers that tierwise has started."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import psycopg
import pymysql
import pytest

from support.engine_contract import open_directory, places_in
from support.engine_sessions import client_of
from tierwise import _core
from tierwise.host import ledger, users
from tierwise.host.programs import PrivateDirectory
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.mariadb.engine import MariadbEngine
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to be attacked as")
SERVERS = ("postgres", "mariadb")
LIBRARIES = ("sqlite", "duckdb", "rocksdb")


def started(name: str, directory: Path) -> Engine:
    if name == "mariadb":
        try:
            installed_mariadb()
        except TierwiseError as error:
            pytest.skip(str(error))
    engine = engines.create_engine(name)
    engine.init(places_in(directory, engine.roles))
    engine.start()
    return engine


Servers = Callable[[str], Engine]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Gives one database of each engine for all tests; it is started when it is first asked for."""
    made: dict[str, Engine] = {}
    with ExitStack() as undo:

        def server(name: str) -> Engine:
            if name not in made:
                made[name] = undo.enter_context(started(name, undo.enter_context(open_directory())))
            return made[name]

        yield server


@pytest.fixture(params=[*SERVERS, *LIBRARIES])
def engine(request: pytest.FixtureRequest, servers: Servers) -> Engine:
    return servers(request.param)


@pytest.fixture
def postgres(servers: Servers) -> PostgresEngine:
    made = servers("postgres")
    assert isinstance(made, PostgresEngine)
    return made


def homes() -> list[Path]:
    """Of what this process has started."""
    own = [entry for entry in ledger.entries("directory") if entry.owner.pid == os.getpid()]
    paths = [Path(entry.facts["path"]) for entry in own if "-home-" in entry.name]
    assert paths
    return paths


def as_nobody(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python as another user of the machine."""
    account = pwd.getpwnam("nobody")
    python = shutil.which("python3", path="/usr/bin") or sys.executable  # the latter may be below /root
    command = [python, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@needs_root
def test_what_is_started_runs_as_an_account_of_its_own(engine: Engine) -> None:
    own = pwd.getpwnam(users.ACCOUNT)
    assert own.pw_uid != 0 and Path(own.pw_shell).name in ("nologin", "false")
    texts = []
    for pid in engine.processes():
        with contextlib.suppress(OSError):  # some end meanwhile
            texts.append(Path(f"/proc/{pid}/status").read_text())
    assert texts
    for text in texts:
        ids = next(line for line in text.splitlines() if line.startswith("Uid:")).split()[1:]
        groups = next(line for line in text.splitlines() if line.startswith("Groups:")).split()[1:]
        assert ids == [str(own.pw_uid)] * 4, text
        assert groups in ([], [str(own.pw_gid)])


@needs_root
def test_another_user_reaches_neither_home_nor_files(engine: Engine) -> None:
    look = "import os, sys; print(len(os.listdir(sys.argv[1])))"
    write = "import pathlib, sys; pathlib.Path(sys.argv[1], 'planted').write_text('x')"
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    for place in [*homes(), *(home / "own" for home in homes()), *engine.directories.values()]:
        for attack in (look, write):
            done = as_nobody(attack, place)
            assert done.returncode != 0 and "PermissionError" in done.stderr, place
    for home in homes():
        names = (Path(folder, name) for folder, _, files in os.walk(home) for name in files)
        for path in filter(Path.is_socket, names):
            done = as_nobody(connect, path)
            assert done.returncode != 0 and "PermissionError" in done.stderr, path


@needs_root
def test_the_log_is_the_callers_and_cannot_be_replaced(engine: Engine) -> None:
    own = pwd.getpwnam(users.ACCOUNT)
    for home in homes():
        outer, log = home.stat(), (home / "log").stat()
        assert (outer.st_uid, stat.S_IMODE(outer.st_mode)) == (0, 0o710)
        assert outer.st_gid == own.pw_gid
        assert (log.st_uid, stat.S_IMODE(log.st_mode)) == (0, 0o600)
    assert engine.running


def test_a_session_needs_the_password(postgres: PostgresEngine) -> None:
    open_dsn = postgres.dsn().partition(" password=")[0]
    with pytest.raises(psycopg.OperationalError, match="no password"):
        psycopg.connect(open_dsn)


@pytest.mark.parametrize(
    "attack",
    [
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "COPY (SELECT 1) TO '/tmp/planted'",
        "SELECT pg_read_file('/etc/passwd')",
        "ALTER SYSTEM SET archive_command = 'id'",
        "CREATE ROLE another SUPERUSER",
        "SET ROLE tierwise",
    ],
)
def test_a_workload_on_postgresql_is_no_superuser(postgres: PostgresEngine, attack: str) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(attack.encode())
        assert isinstance(caught.value, psycopg.errors.InsufficientPrivilege)
    with pytest.raises(TierwiseError, match=r"(?i)permission|superuser|must"):
        postgres.execute_schema([(Role.DATA, attack)])


def test_a_workload_on_mariadb_has_rights_in_its_schema_alone(servers: Servers) -> None:
    engine = servers("mariadb")
    assert isinstance(engine, MariadbEngine)
    with client_of(engine) as connection, connection.cursor() as cursor:
        for attack in (
            "SELECT 1 INTO OUTFILE '/tmp/planted'",
            "SET GLOBAL general_log = ON",
            "CREATE USER another",
            "INSTALL SONAME 'ha_connect'",
        ):
            with pytest.raises(pymysql.MySQLError, match=r"(?i)denied"):
                cursor.execute(attack)
        cursor.execute("SELECT LOAD_FILE('/etc/passwd')")
        assert cursor.fetchone() == (None,)
    with pytest.raises(pymysql.OperationalError, match=r"(?i)denied"):
        pymysql.connect(unix_socket=engine.settings()["socket"], user="root")


@pytest.mark.parametrize(
    ("name", "attack"),
    [
        ("duckdb", "COPY (SELECT 1) TO '{outside}/planted'"),
        ("duckdb", "CREATE TABLE stolen AS SELECT * FROM read_text('/etc/passwd')"),
        ("duckdb", "ATTACH '{outside}/planted'"),
        ("duckdb", "SET enable_external_access = true"),
        ("sqlite", "ATTACH '{outside}/planted' AS other"),
        ("sqlite", "VACUUM INTO '{outside}/planted'"),
    ],
)
def test_a_workload_opens_no_files_but_the_databases(name: str, attack: str, servers: Servers) -> None:
    with open_directory() as outside:
        outside.chmod(0o777)
        with pytest.raises(TierwiseError):
            servers(name).execute_schema([(Role.DATA, attack.format(outside=outside))])
        assert not list(outside.iterdir())


def test_sqlite_still_does_what_is_its_own(servers: Servers) -> None:
    statements = ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "VACUUM", "ATTACH '' AS scratch"]
    servers("sqlite").execute_schema([(Role.DATA, sql) for sql in statements])


@needs_root
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_worker_can_touch_nothing_else(name: str, servers: Servers) -> None:
    """Not even by the system calls of its process: the kernel refuses."""
    text = Path(f"/proc/{servers(name).server_pid}/status").read_text()
    assert "NoNewPrivs:\t1" in text


def words_of(recording: Path) -> str:
    """All text in a recording."""
    problems = [(recording / "about.json").read_text("utf-8")]
    for table in recording.glob("*.parquet"):
        problems += [str(row) for row in duckdb.read_parquet(str(table)).distinct().limit(100_000).fetchall()]
    return "\n".join(problems)


@pytest.mark.skipif(_core.recording_impossible() is not None, reason="nothing can be recorded here")
def test_a_recording_holds_no_statement_and_is_its_owners(postgres: PostgresEngine, tmp_path: Path) -> None:
    secret = "hunter2-in-a-statement"
    load = (
        "import psycopg, sys, time\n"
        "c = psycopg.connect(sys.argv[1], autocommit=True)\n"
        "until = time.monotonic() + 8\n"
        "while time.monotonic() < until: c.execute('SELECT length(%s)', [sys.argv[2]])\n"
    )
    with subprocess.Popen([sys.executable, "-c", load, postgres.dsn(), secret]) as client:
        out = tmp_path / "out"
        command = [sys.executable, "-m", "tierwise", "record", "--pid", str(postgres.server_pid)]
        done = subprocess.run(
            [*command, "-o", str(out), "--duration", "3s"], capture_output=True, text=True, check=False
        )
        client.kill()
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in out.iterdir()} == {0o600}
    words = words_of(out)
    assert "postgres" in words
    assert secret not in words and "SELECT" not in words
    assert postgres.dsn().rpartition("password=")[2] not in words


def test_a_home_is_closed(run_dir: Path) -> None:
    home = PrivateDirectory("test-home", users.server_user())
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (home.outer, home.own)]
    assert modes in ([0o710, 0o700], [0o700, 0o700])
    home.remove()
    assert run_dir.is_dir()
