"""What strangers try: other users of the machine, workloads, studies and recordings from elsewhere."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pymysql
import pytest

from support.engine_contract import open_directory, places_in
from support.engine_sessions import client_of
from support.paths import RECORDINGS
from tierwise import engines
from tierwise.device_models import profiles
from tierwise.engines.base import Engine
from tierwise.engines.mariadb.binaries import installed
from tierwise.engines.mariadb.engine import MariadbEngine
from tierwise.engines.postgres.engine import PostgresEngine
from tierwise.host import ledger, tracing, users
from tierwise.host.clean import clean
from tierwise.host.home import Home, open_log
from tierwise.model.errors import TierwiseError
from tierwise.model.file_names import file_below, path_in
from tierwise.model.roles import Role
from tierwise.recording import redact, remove_recording
from tierwise.studies import study
from tierwise.workloads import Workload

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to be attacked as")
EXAMPLE = RECORDINGS / "keyed-update"
SERVERS = ("postgres", "mariadb")
LIBRARIES = ("sqlite", "duckdb", "rocksdb")


def started(name: str, directory: Path) -> Engine:
    if name == "mariadb":
        try:
            installed()
        except TierwiseError as error:
            pytest.skip(str(error))
    engine = engines.create(name)
    engine.init(places_in(directory, engine.roles))
    engine.start()
    return engine


@pytest.fixture(params=[*SERVERS, *LIBRARIES])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with open_directory() as directory, started(request.param, directory) as made:
        yield made


@pytest.fixture
def postgres() -> Iterator[PostgresEngine]:
    with open_directory() as directory:
        made = started("postgres", directory)
        assert isinstance(made, PostgresEngine)
        with made:
            yield made


def homes() -> list[Path]:
    """Of what this process has started."""
    own = [entry for entry in ledger.entries("directory") if entry.owner.pid == os.getpid()]
    found = [Path(entry.facts["path"]) for entry in own if "-home-" in entry.name]
    assert found
    return found


def as_nobody(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python as another user of the machine."""
    account = pwd.getpwnam("nobody")
    python = shutil.which("python3", path="/usr/bin") or sys.executable  # the latter may be below /root
    command = [python, "-c", code, *map(str, arguments)]
    return subprocess.run(
        command, user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip


# Other users of the machine


@needs_root
def test_what_is_started_runs_as_an_account_of_its_own(engine: Engine) -> None:
    own = pwd.getpwnam(users.ACCOUNT)
    assert own.pw_uid != 0 and Path(own.pw_shell).name in ("nologin", "false")
    for pid in engine.processes():
        told = Path(f"/proc/{pid}/status").read_text()
        ids = next(line for line in told.splitlines() if line.startswith("Uid:")).split()[1:]
        groups = next(line for line in told.splitlines() if line.startswith("Groups:")).split()[1:]
        assert ids == [str(own.pw_uid)] * 4, pid
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
        for path in home.rglob("*"):
            if stat.S_ISSOCK(path.stat().st_mode):
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


def test_a_log_is_not_opened_through_a_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "log"
    victim.write_text("theirs")
    link.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        open_log(link)
    assert victim.read_text() == "theirs"


@needs_root
def test_an_account_with_a_login_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = pwd.struct_passwd(("tierwise", "x", 1000, 1000, "", "/home/tierwise", "/bin/bash"))
    monkeypatch.setattr(pwd, "getpwnam", lambda _: theirs)
    with pytest.raises(TierwiseError, match="is somebody's"):
        users.server_user()


def test_a_session_needs_the_password(postgres: PostgresEngine) -> None:
    open_dsn = postgres.dsn().partition(" password=")[0]
    with pytest.raises(psycopg.OperationalError, match="no password"):
        psycopg.connect(open_dsn)


# Workloads


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


def test_a_workload_on_mariadb_has_rights_in_its_schema_alone() -> None:
    with open_directory() as directory, started("mariadb", directory) as engine:
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
def test_a_workload_opens_no_files_but_the_databases(name: str, attack: str) -> None:
    with open_directory() as directory, open_directory() as outside, started(name, directory) as engine:
        outside.chmod(0o777)
        with pytest.raises(TierwiseError):
            engine.execute_schema([(Role.DATA, attack.format(outside=outside))])
        assert not list(outside.iterdir())


def test_sqlite_still_does_what_is_its_own() -> None:
    with open_directory() as directory, started("sqlite", directory) as engine:
        statements = ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "VACUUM", "ATTACH '' AS scratch"]
        engine.execute_schema([(Role.DATA, sql) for sql in statements])


@needs_root
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_worker_can_touch_nothing_else(name: str) -> None:
    """Not even by the system calls of its process: the kernel refuses."""
    with open_directory() as directory, started(name, directory) as engine:
        told = Path(f"/proc/{engine.server_pid}/status").read_text()
        assert "NoNewPrivs:\t1" in told


# Names


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a/b", "..", ".hidden", "a\0b", "", "x" * 300])
def test_a_name_leads_nowhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match="cannot be the name of a file"):
        path_in(tmp_path, name)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "a\0b", "x" * 5000])
def test_a_file_is_read_from_its_own_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(TierwiseError, match="does not lie in"):
        file_below(folder, name)


STUDY = """
name = "{name}"
question = "?"
engines = ["postgres"]
workload = "order_entry"
transactions = 10
repeats = 1
baseline = "{placement}"
[devices]
own = {{ path = "/tmp" }}
[placements."{placement}"]
default = "own"
"""


@pytest.mark.parametrize(
    ("name", "placement"), [("../../../x", "own"), ("/x", "own"), ("x", "../../victim"), ("x", "/victim")]
)
def test_a_study_with_a_path_for_a_name_is_refused(name: str, placement: str) -> None:
    with pytest.raises(TierwiseError, match=r"study\.toml: (name|placements)"):
        study.parse(STUDY.format(name=name, placement=placement), "study.toml")


def test_a_workload_reads_no_files_outside_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (tmp_path / "secret.sql").write_text("SELECT 1;")
    (folder / "schema.sql").write_text("-- role: data\nCREATE TABLE t (a integer);\n")
    (folder / "workload.toml").write_text(
        'summary = "x"\n[transactions.t]\nsteps = [{ file = "../secret.sql" }]\n'
    )
    with pytest.raises(TierwiseError, match="does not lie in"):
        Workload.load(str(folder))


def test_a_profile_refers_to_none_outside_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text('kind = "hdd"\n')
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.toml").write_text('like = "../secret"\n')
    with pytest.raises(TierwiseError):
        profiles.load(str(folder / "mine.toml"))


def test_only_a_recording_is_removed_in_place_of_a_new_one(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.mkdir()
    (victim / "file").write_text("theirs")
    link.symlink_to(victim)
    for path in (victim, link, victim / "file"):
        with pytest.raises(TierwiseError, match="is no recording"):
            remove_recording(path)
    assert (victim / "file").read_text() == "theirs"


# The ledger


def planted(run_dir: Path, kind: str, name: str, **facts: str) -> Path:
    """An entry whose owner is dead."""
    owner = {"pid": 1, "start_ticks": 0, "boot_id": "another"}
    file = run_dir / f"{kind}-{name}.json"
    file.write_text(json.dumps({"kind": kind, "name": name, "owner": owner, "facts": facts}))
    return file


def test_a_ledger_that_others_may_write_is_refused(run_dir: Path) -> None:
    run_dir.chmod(0o777)
    with pytest.raises(TierwiseError, match="can be written by others"):
        clean()
    run_dir.chmod(0o755)


@pytest.mark.parametrize("kind", ["directory", "disk", "tracing"])
def test_an_entry_undoes_only_what_tierwise_makes(kind: str, run_dir: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    facts = {fact: str(victim) for fact in ("path", "home", "mount")}
    file = planted(run_dir, kind, "planted-00000000", **facts)
    with pytest.raises(TierwiseError, match=str(victim)):
        clean()
    assert victim.is_dir()
    file.unlink()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"kind": "disk"}', "\udcff"])
def test_a_damaged_entry_is_one_line_and_the_rest_is_undone(text: str, run_dir: Path) -> None:
    damaged = run_dir / "disk-damaged.json"
    damaged.write_bytes(text.encode("utf-8", "surrogateescape"))
    left = run_dir / "left-00000000"
    left.mkdir()
    planted(run_dir, "directory", left.name, path=str(left))
    with pytest.raises(TierwiseError, match="damaged entry of the ledger") as caught:
        clean()
    assert "\n" not in str(caught.value)
    assert not left.exists()
    damaged.unlink()


# What is written


def words_of(recording: Path) -> str:
    """All text in a recording."""
    found = [(recording / "about.json").read_text("utf-8")]
    for table in recording.glob("*.parquet"):
        found += [str(row) for row in duckdb.read_parquet(str(table)).distinct().limit(100_000).fetchall()]
    return "\n".join(found)


@pytest.mark.privileged
@pytest.mark.skipif(tracing.impossible() is not None, reason="nothing can be recorded here")
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
    said = words_of(out)
    assert "postgres" in said
    assert secret not in said and "SELECT" not in said
    assert postgres.dsn().rpartition("password=")[2] not in said


def test_a_redacted_recording_names_nothing_and_says_the_same(tmp_path: Path) -> None:
    from tierwise.predict import Scenario, predict

    source = EXAMPLE
    redact(source, tmp_path / "shared")
    before, after = words_of(source), words_of(tmp_path / "shared")
    paths = {word for word in before.split("'") if word.startswith("/")}
    names = {part for path in paths for part in path.split("/") if re.fullmatch(r"[a-z]+-[a-z]+-\w+", part)}
    assert paths and names
    assert not [name for name in paths | names if name in after]
    told = [predict(path, [Scenario()])[0] for path in (source, tmp_path / "shared")]
    assert told[0].rate_per_s == told[1].rate_per_s


def test_a_redacted_recording_takes_a_new_folder(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    with pytest.raises(TierwiseError, match="is not empty"):
        redact(EXAMPLE, tmp_path)


def test_a_home_is_closed(run_dir: Path) -> None:
    home = Home("test-home", users.server_user())
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (home.outer, home.own)]
    assert modes in ([0o710, 0o700], [0o700, 0o700])
    home.remove()
    assert run_dir.is_dir()
