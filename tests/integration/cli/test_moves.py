"""The steps that an advice gives for embedded engines, typed into a shell: there, and the way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import duckdb
import pytest
from rocksdict import DBPath, Options, Rdict

from tierwise.model.placement import Role
from tierwise.report.move_steps import MoveSteps, move_guide

ROWS = 2000
DUCKDB_SHELL = f"""#!{sys.executable}
import sys, duckdb
file, dash_c, statement = sys.argv[1:]
assert dash_c == "-c"
with duckdb.connect(file) as connection:
    connection.execute(statement)
"""


@pytest.fixture
def new(tmp_path: Path) -> Path:
    folder = tmp_path / "a new device"
    folder.mkdir()
    return folder


def steps_of(engine: str, role: Role) -> MoveSteps:
    (steps,) = move_guide(engine, {role: "ssd-nvme-dc"}).steps
    return steps


def typed(
    lines: str, database: Path, new: Path, programs: Path | None = None, *, fails: bool = False
) -> None:
    path = os.pathsep.join(filter(None, [str(programs or ""), os.environ["PATH"]]))
    env = {**os.environ, "DB": str(database), "NEW": str(new), "PATH": path}
    shell = ["sh", "-c" if fails else "-euc", lines]  # without -e, as a reader types them
    done = subprocess.run(shell, env=env, capture_output=True, text=True, check=False)
    assert bool(done.returncode) == fails, done.stderr


def test_sqlite_moves_and_returns(tmp_path: Path, new: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("no sqlite3: apt-get install sqlite3")
    database, steps = tmp_path / "my shop.db", steps_of("sqlite", Role.DATA)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a integer)")
        connection.executemany("INSERT INTO t VALUES (?)", [(row,) for row in range(ROWS)])
        connection.commit()
    typed(steps.there, database, new)
    assert not database.exists()
    typed(steps.there, database, new, fails=True)  # which put an empty file in place of both copies
    with closing(sqlite3.connect(new / database.name)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
        connection.execute("INSERT INTO t VALUES (-1)")
        connection.commit()
    typed(steps.back, database, new)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*), min(a) FROM t").fetchone() == (ROWS + 1, -1)
        connection.execute("INSERT INTO t VALUES (-2)")
        connection.commit()
    for again in (steps.back, steps.there):  # which took the copy of before for the database
        typed(again, database, new, fails=True)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT min(a) FROM t").fetchone() == (-2,)


def test_duckdb_moves_and_returns(tmp_path: Path, new: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "duckdb").write_text(DUCKDB_SHELL, "utf-8")
    (programs / "duckdb").chmod(0o755)
    database, steps = tmp_path / "my shop.duckdb", steps_of("duckdb", Role.DATA)
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT range AS a FROM range({ROWS})")
    typed(steps.there, database, new, programs)
    assert not database.exists()
    typed(steps.there, database, new, programs, fails=True)
    with duckdb.connect(str(new / database.name)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
        connection.execute("INSERT INTO t VALUES (-1)")
    typed(steps.back, database, new, programs)
    with duckdb.connect(str(database)) as connection:
        assert connection.execute("SELECT count(*), min(a) FROM t").fetchone() == (ROWS + 1, -1)
        temp = steps_of("duckdb", Role.TEMP)
        connection.execute(temp.there.replace("$NEW", str(new)))
        setting = "SELECT current_setting('temp_directory')"
        assert connection.execute(setting).fetchone() == (str(new / "tmp"),)
        connection.execute(temp.back)
        assert connection.execute(setting).fetchone() != (str(new / "tmp"),)


def wal_dir(options: Options, new: Path) -> None:
    options.set_wal_dir(str(new / "wal"))


def db_paths(options: Options, new: Path) -> None:
    options.set_db_paths([DBPath(str(new / "sst"), 1 << 30)])


@pytest.mark.parametrize(
    ("role", "place", "moved"), [(Role.LOG, wal_dir, "wal/*.log"), (Role.DATA, db_paths, "sst/*.sst")]
)
def test_rocksdb_moves_and_returns(
    tmp_path: Path, new: Path, role: Role, place: Callable[[Options, Path], None], moved: str
) -> None:
    database, steps = tmp_path / "my shop", steps_of("rocksdb", role)
    write(database, Options(), range(ROWS))
    typed(steps.there, database, new)
    assert list(new.glob(moved))
    options = Options()
    place(options, new)
    write(database, options, range(ROWS, 2 * ROWS))
    typed(steps.back, database, new)
    assert not list(new.glob(moved))
    rows = Rdict(str(database), Options())
    assert [rows[row] for row in range(2 * ROWS)] == [f"row {row}" for row in range(2 * ROWS)]
    rows.close()


def write(database: Path, options: Options, numbers: range) -> None:
    """Half of the rows go to a table file, half stay in the log."""
    rows = Rdict(str(database), options)
    for place, number in enumerate(numbers):
        rows[number] = f"row {number}"
        if place == len(numbers) // 2:
            rows.flush()
    rows.flush_wal(sync=True)
    rows.close()


def test_a_whole_rocksdb_moves_and_returns(tmp_path: Path, new: Path) -> None:
    database, steps = tmp_path / "my shop", steps_of("rocksdb", Role.SYSTEM)
    write(database, Options(), range(ROWS))
    typed(steps.there, database, new)
    write(new / "db", Options(), range(ROWS, 2 * ROWS))
    typed(steps.there, database, new, fails=True)
    typed(steps.back, database, new)
    typed(steps.back, database, new, fails=True)
    rows = Rdict(str(database), Options())
    assert len(list(rows.keys())) == 2 * ROWS
    rows.close()


@pytest.fixture
def no_servers(tmp_path: Path) -> Path:
    """Programs that start and stop servers: they end the one that has files open, and start none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("pg_ctl", "systemctl"):
        (folder / name).write_text('#!/bin/sh\n[ "$1" != stop ] || kill $(cat "${0%/*}/pid")\n')
        (folder / name).chmod(0o755)
    (folder / "postgres").write_text("#!/bin/sh\necho 1\n")
    (folder / "postgres").chmod(0o755)
    return folder


def typed_for_server(lines: str, programs: Path, **variables: Path) -> None:
    """Paste lines into a shell while a program has all files of the old device open, as a server has."""
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        **{name: str(path) for name, path in variables.items()},
    }
    with ExitStack() as undo:
        olds = {variables.get("DATADIR"), variables.get("PGDATA")} if "\nused " in lines else set()
        files = [
            undo.enter_context(path.open())
            for old in filter(None, olds)
            for path in old.rglob("*")
            if path.is_file()
        ]
        server = subprocess.Popen(["sleep", "600"], pass_fds=[file.fileno() for file in files])
        (programs / "pid").write_text(str(server.pid))
        undo.close()
        undo.callback(server.wait)
        undo.callback(server.kill)
        subprocess.run(["sh", "-c", lines], env=env, check=True, stdin=subprocess.DEVNULL)


def names_in(folder: Path) -> set[str]:
    assert not folder.is_symlink()
    return {file.name for file in folder.iterdir()}


def linked(tmp_path: Path, *names: str) -> tuple[Path, Path]:
    """A directory on the old device with files, and a link to it."""
    real, link = tmp_path / "old device" / "files", tmp_path / "data" / "link"
    for folder in (real, link.parent):
        folder.mkdir(parents=True)
    for name in names:
        (real / name).write_text(name)
    link.symlink_to(real)
    return real, link


def test_a_log_of_postgres_that_lies_behind_a_link_already_moves(
    tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """The link was copied, so that the log stayed on the old device."""
    _, link = linked(tmp_path, "000000010000000000000001")
    link = link.rename(link.with_name("pg_wal"))
    (link.parent / "postgresql.conf").touch()
    typed_for_server(steps_of("postgres", Role.LOG).there, no_servers, PGDATA=link.parent, NEW=new)
    assert names_in(new / "pg_wal") == {"000000010000000000000001"}
    assert link.resolve() == new / "pg_wal" and not link.with_name("pg_wal.before").is_symlink()


def test_a_data_directory_behind_a_link_moves_as_its_files_do(
    tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """The link was copied, and MariaDB's redo log and system tablespace were removed behind it."""
    kept = {"ib_logfile0", "ibdata1", "undo001"}
    real, link = linked(tmp_path, "t.frm", "aria_log_control", *kept)
    (conf := tmp_path / "conf").mkdir()
    typed_for_server(steps_of("mariadb", Role.DATA).there, no_servers, DATADIR=link, CONF=conf, NEW=new)
    assert names_in(new / "mysql") == {"t.frm", "aria_log_control"} and names_in(real) == kept
    settings = (conf / "zz-kept.cnf").read_text()
    assert settings.count(f'= "{link}"') == 3
    (real / "postgresql.conf").touch()
    (real / "global").mkdir()
    (real / "global" / "pg_control").touch()
    typed_for_server(steps_of("postgres", Role.SYSTEM).there, no_servers, PGDATA=link, NEW=new)
    assert names_in(new / "pgdata") == {*kept, "postgresql.conf", "global"}
    assert names_in(real / "global") == {"pg_control.moved"}, "no server starts on the old files"


def test_what_of_mariadb_lies_elsewhere_already_is_not_looked_for_in_the_data_directory(
    tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """A redo log or undo files with a directory of their own would not be found by the server."""
    real, _ = linked(tmp_path, "aria_log_control", "ibdata1")
    (conf := tmp_path / "conf").mkdir()
    typed_for_server(steps_of("mariadb", Role.DATA).there, no_servers, DATADIR=real, CONF=conf, NEW=new)
    assert (conf / "zz-kept.cnf").read_text().splitlines() == [
        "[mariadb]",
        f'innodb_data_home_dir = "{real}"',
    ]


def test_mysql_starts_with_each_table_in_one_directory_alone(
    tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """MySQL looks for tables in all its directories, and does not start where it finds one twice."""
    kept = {"ibdata1", "undo_001", "#ib_16384_0.dblwr", "binlog.index", "binlog.000001"}
    real, _ = linked(tmp_path, "mysql.ibd", "own.ibu", "auto.cnf", *kept)
    (real / "undo_2").mkdir()
    (real / "undo_2" / "t.ibd").touch()
    (conf := tmp_path / "conf").mkdir()
    with (no_servers / "systemctl").open("a") as file:
        file.write('[ "$1" != start ] || ! find "$DATADIR" -name "*.ib[du]" | grep .\n')
    places = {"DATADIR": real, "BINLOG": real / "binlog", "CONF": conf, "NEW": new}
    typed_for_server(steps_of("mysql", Role.DATA).there, no_servers, SERVICE=Path("mysql"), **places)
    assert names_in(new / "mysql") == {"mysql.ibd", "own.ibu", "auto.cnf", "undo_2"}
    assert (new / "mysql" / "undo_2" / "t.ibd").exists()
    assert names_in(real) - {"undo_2"} == kept
    settings = (conf / "zz-kept.cnf").read_text()
    assert f'log_bin = "{real}/binlog"' in settings and f'innodb_doublewrite_dir = "{real}"' in settings


def test_a_binary_log_of_mysql_is_listed_where_it_lies(tmp_path: Path, new: Path, no_servers: Path) -> None:
    folder, variables = old_files("mysql", tmp_path)
    (folder / "binlog.index").write_text("./binlog.000001\n")
    steps = steps_of("mysql", Role.ARCHIVE)
    typed_for_server(own_account(steps.there), no_servers, NEW=new, **variables)
    assert (new / "binlog" / "binlog.index").read_text() == f"{new}/binlog/binlog.000001\n"
    assert not list(folder.glob("binlog.*"))
    typed_for_server(steps.back, no_servers, NEW=new, **variables)
    assert (folder / "binlog.index").read_text() == f"{folder}/binlog.000001\n"


@pytest.mark.parametrize(
    ("lines", "goes"),
    [
        ('  "{new}/" r,\n  "{new}/**" rwk,\n', True),
        ("{new}/redo/** rwk,\n", True),
        ("{new}/redo2/** rwk,\n", False),
        ('# "{new}/**" rwk,\n', False),
        ("", False),
    ],
)
def test_mysql_does_not_stop_for_a_directory_that_apparmor_denies(
    lines: str, goes: bool, tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """Ubuntu's profile is in force as installed: the server would not start again."""
    _, variables = old_files("mysql", tmp_path)
    (profiles := tmp_path / "profiles").write_text("/usr/sbin/mysqld (enforce)\n")
    (local := tmp_path / "local").write_text(lines.format(new=new))
    stopped = tmp_path / "stopped"
    (no_servers / "systemctl").write_text(f"#!/bin/sh\ntouch '{stopped}'\n")
    steps = own_account(steps_of("mysql", Role.LOG).there)
    for place, own in (
        ("/sys/kernel/security/apparmor/profiles", profiles),
        ("/etc/apparmor.d/local/usr.sbin.mysqld", local),
    ):
        assert place in steps
        steps = steps.replace(place, f"'{own}'")
    with pytest.raises(subprocess.CalledProcessError):  # at the latest, since the server goes on
        typed_for_server(steps, no_servers, NEW=new, **variables)
    assert stopped.exists() == goes


@pytest.mark.parametrize(
    ("engine", "role", "left"),
    [
        ("postgres", Role.LOG, "pg_wal"),
        ("postgres", Role.SYSTEM, "pgdata"),
        ("mariadb", Role.DATA, "mysql"),
        ("mysql", Role.DATA, "mysql"),
    ],
)
def test_a_move_ends_before_the_server_stops_where_a_former_one_left_files(
    engine: str, role: Role, left: str, tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """The copy went into the old one, and the server started on the old files."""
    stopped = tmp_path / "stopped"
    for program in no_servers.iterdir():
        program.write_text(f"#!/bin/sh\ntouch '{stopped}'\n")
    (files := tmp_path / "files").mkdir()
    (files / "pg_wal").mkdir()
    (files / "postgresql.conf").touch()
    (new / left).mkdir()
    (new / left / "old").touch()
    with pytest.raises(subprocess.CalledProcessError):
        typed_for_server(
            steps_of(engine, role).there, no_servers, PGDATA=files, DATADIR=files, CONF=tmp_path, NEW=new
        )
    assert not stopped.exists() and names_in(new / left) == {"old"}


def tree(folder: Path) -> dict[str, str]:
    """Each file and link below a folder, with its text."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


OLD_FILES = {
    "postgres": ["postgresql.conf", "global/pg_control", "pg_wal/000000010000000000000001"],
    "mariadb": ["ib_logfile0", "ib_logfile1", "undo001", "undo002", "ibdata1", "aria_log_control"],
    "mysql": [
        *("#innodb_redo/#ib_redo5", "undo_001", "undo_002", "ibdata1", "mysql.ibd", "#ib_16384_0.dblwr"),
        *("binlog.000001", "binlog.index"),
    ],
    "rocksdb": ["CURRENT", "000004.log", "000005.log", "000006.sst"],
    "sqlite": ["shop.db"],
    "duckdb": ["shop.db"],
}
COPYING = [
    ("postgres", Role.LOG),
    ("postgres", Role.SYSTEM),
    *(("mariadb", role) for role in (Role.LOG, Role.UNDO, Role.DATA, Role.SYSTEM)),
    *(("mysql", role) for role in (Role.LOG, Role.UNDO, Role.DATA, Role.SYSTEM)),
    *(("mysql", role) for role in (Role.ARCHIVE, Role.DOUBLEWRITE)),
    *(("rocksdb", role) for role in (Role.LOG, Role.DATA, Role.SYSTEM)),
    ("sqlite", Role.DATA),
    ("duckdb", Role.DATA),
]


def old_files(engine: str, tmp_path: Path) -> tuple[Path, dict[str, Path]]:
    """The files of an engine, and the variables that name them."""
    folder = tmp_path / "old"
    for name in OLD_FILES[engine]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (conf := tmp_path / "conf").mkdir()
    database = folder / "shop.db" if (folder / "shop.db").exists() else folder
    return folder, {"PGDATA": folder, "DATADIR": folder, "CONF": conf, "DB": database} | {
        "BINLOG": folder / "binlog",
        "SERVICE": Path("mysql"),
    }


@pytest.mark.parametrize(("engine", "role"), COPYING)
def test_a_copy_that_fails_leaves_every_file_where_it_was(
    engine: str, role: Role, tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """Pasted lines went on after a full device: they removed the files that were not copied."""
    folder, variables = old_files(engine, tmp_path)
    before = tree(folder)
    for name in ("cp", "mv"):  # half a file, as on a full device
        (no_servers / name).write_text(f"#!/bin/sh\nfor last; do :; done\ntouch '{new}/half'\nexit 1\n")
    for name in ("sqlite3", "duckdb"):
        (no_servers / name).write_text("#!/bin/sh\n")
    for program in no_servers.iterdir():
        program.chmod(0o755)
    with pytest.raises(subprocess.CalledProcessError):
        typed_for_server(own_account(steps_of(engine, role).there), no_servers, NEW=new, **variables)
    assert (new / "half").exists() and tree(folder) == before
    assert not any(variables["CONF"].iterdir())


def own_account(lines: str) -> str:
    """For this account, where an engine's own is not there."""
    return lines.replace(" -o mysql -g mysql", "")


@pytest.mark.parametrize(("engine", "role"), [each for each in COPYING if each[0] != "postgres"])
def test_files_that_a_program_has_open_do_not_move(
    engine: str, role: Role, tmp_path: Path, new: Path, no_servers: Path
) -> None:
    """A server that does not run under systemd went on without its files."""
    folder, variables = old_files(engine, tmp_path)
    before = tree(folder)
    for name in ("systemctl", "sqlite3", "duckdb"):
        (no_servers / name).write_text("#!/bin/sh\n")
        (no_servers / name).chmod(0o755)
    with ExitStack() as undo, pytest.raises(subprocess.CalledProcessError):
        for name in OLD_FILES[engine]:
            undo.enter_context((folder / name).open())
        typed_for_server(own_account(steps_of(engine, role).there), no_servers, NEW=new, **variables)
    assert tree(folder) == before and not tree(new)
