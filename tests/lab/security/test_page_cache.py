"""Production beside the lab: a cold start empties the caches of tierwise's own files, and of no others."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.engine_cases import CASES
from support.engine_contract import EngineCase, Load, files_under, open_directory, places_in
from support.tiny_study import tiny_study
from tierwise import results
from tierwise.cli import app
from tierwise.device_models import profiles
from tierwise.host import ledger, mounts, page_cache
from tierwise.host.disk.disk import EmulatedDisk, Partition
from tierwise.host.page_cache import resident_bytes
from tierwise.host.users import server_user
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies import study
from tierwise.lab.studies.runner.database_run import execute_run
from tierwise.lab.studies.study import plan_runs
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop caches of others")
MIB = 1 << 20
ROOT = Path(__file__).parents[3]
ROWS = 30_000
FEW_PAGES = 64 * mmap.PAGESIZE
"""A server that starts reads the head of a file, with read-ahead of 128 KiB."""
# Whoever else has root may drop the machine's caches while a test runs, and the kernel may reclaim pages.
pytestmark = pytest.mark.usefixtures("run_dir")
ENGINES = ("postgres", "mariadb", "sqlite", "rocksdb", "duckdb")


@pytest.fixture
def production() -> Iterator[Path]:
    """A file of another database, in the page cache and mapped by nobody."""
    with tempfile.NamedTemporaryFile(dir="/var/tmp", prefix="production-") as file:
        path = Path(file.name)
        path.write_bytes(os.urandom(16 * MIB))
        os.fsync(file.fileno())
        yield path


@contextlib.contextmanager
def kept(production: Path, share: float = 0.99) -> Iterator[None]:
    """What happens inside leaves this share of a file in the page cache, less what the kernel reclaimed."""
    production.read_bytes()
    assert share_resident(production) == 1
    reclaimed_before = reclaimed_bytes()
    yield
    reclaimed = reclaimed_bytes() - reclaimed_before
    assert share_resident(production) >= share - reclaimed / production.stat().st_size


def reclaimed_bytes() -> int:
    """Bytes of files that the kernel took back for want of memory; what a program drops does not count."""
    figures = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(figures["pgsteal_file"]) * mmap.PAGESIZE


def share_resident(path: Path) -> float:
    return (resident_bytes(path) or 0) / path.stat().st_size


def fill(path: Path, size_bytes: int = 4 * MIB) -> Path:
    """A file that is wholly in the page cache, and clean."""
    with path.open("wb") as file:
        file.write(os.urandom(size_bytes))
        os.fsync(file.fileno())
    path.read_bytes()
    assert resident_bytes(path) == size_bytes
    return path


def case_of(name: str) -> EngineCase:
    case = next(case for case in CASES if case.name == name)
    if reason := case.missing():
        pytest.skip(reason)
    return case


@contextlib.contextmanager
def small_disk(partitions: frozenset[str]) -> Iterator[EmulatedDisk]:
    """An emulated disk of this process, at memory speed."""
    parts = [Partition(name, 256 * MIB) for name in sorted(partitions)]
    with (
        ledger.passage_directory("mnt", server_user(), ledger.run_dir()) as parent,
        EmulatedDisk.up(
            f"cold-{os.getpid()}", profiles.load_profile("ssd-nvme-dc"), parts, parent / "d"
        ) as disk,
    ):
        disk.set_timing(False)
        yield disk


def warmed(case: EngineCase, engine: Engine) -> None:
    """Fill the database, then read its files into the page cache."""
    engine.start()
    case.fill(engine, rows=ROWS)
    engine.stop()
    for directory in engine.directories.values():
        for file in files_under(directory):
            file.read_bytes()
    engine.start()


def resident_data(engine: Engine) -> int:
    return sum(resident_bytes(file) or 0 for file in files_under(engine.directories[Role.DATA]))


@needs_root
@pytest.mark.parametrize("name", ENGINES)
def test_a_cold_start_leaves_production_in_the_page_cache(name: str, production: Path) -> None:
    case = case_of(name)
    with open_directory() as directory, case.create() as engine:
        engine.init(places_in(directory, engine.roles))
        warmed(case, engine)
        assert resident_data(engine) > MIB / 2
        with kept(production):
            cold = engine.restart_cold()
        assert resident_data(engine) <= FEW_PAGES
        assert (cold.dropped, cold.remounted, cold.warm) == ("own files", [], [])
        assert cold.resident_bytes <= mmap.PAGESIZE


@pytest.mark.parametrize("name", ENGINES)
def test_so_does_one_on_an_emulated_disk(name: str, production: Path) -> None:
    """The disk is mounted anew, so that the first scan reads the whole table from the device."""
    case = case_of(name)
    roles = case.create().roles
    with small_disk(frozenset(map(str, roles))) as disk, case.create() as engine:
        engine.init({Role(role): point for role, point in disk.mounts.items()})
        warmed(case, engine)
        with kept(production):
            cold = engine.restart_cold()
        assert resident_data(engine) <= FEW_PAGES
        assert (cold.remounted, cold.not_remounted, cold.warm) == (sorted(roles), {}, [])
        disk.reset_stats()
        with Load(case, engine) as load:
            assert load.lap("scan")["rows"] == ROWS
        read_bytes = disk.stats().partitions["data"].read_bytes
        # DuckDB stores the numbers of the scanned column in a few bits each.
        assert read_bytes > (ROWS * 100 if name != "duckdb" else 0)
        assert resident_data(engine) >= read_bytes * 0.9 or name == "mariadb", "the device gave what was read"


def mount_id(point: Path) -> int:
    mount = mounts.mount_at(point)
    assert mount is not None
    return mount.id


@needs_root
def test_a_run_and_its_laps_state_how_they_were_made_cold(own: Path, production: Path) -> None:
    chosen = tiny_study(own, "sqlite", "scan_seek", "scale = 0.01")
    (plan,) = plan_runs(chosen, 1)
    with kept(production, 0.9):
        result = execute_run(chosen, plan, 1, lambda _: None)
    assert result.status == "ok", result.problems
    starts = [result.cold_start, *(lap.cold_start for lap in result.laps if lap.cold)]
    assert len(starts) > 2
    assert all(start is not None and start.dropped == "own files" and not start.warm for start in starts)
    assert [lap.cold_start for lap in result.laps if not lap.cold] == [None] * sum(
        not lap.cold for lap in result.laps
    )


def test_a_disk_in_use_stays_mounted_and_the_result_states_by_whom(production: Path) -> None:
    with small_disk(frozenset({"data", "log"})) as disk:
        data, log = fill(disk.mounts["data"] / "table"), fill(disk.mounts["log"] / "wal")
        places = [(Role.DATA, disk.mounts["data"]), (Role.LOG, disk.mounts["log"])]
        with data.open("rb"), kept(production):
            cold = page_cache.make_caches_cold(places)
        assert cold.remounted == [Role.LOG]
        assert f"in use by {os.getpid()}" in cold.not_remounted[Role.DATA]
        assert f"the disk of data was not unmounted ({cold.not_remounted[Role.DATA]})" in cold.warnings[0]
        assert (resident_bytes(data), resident_bytes(log)) == (0, 0)
        assert page_cache.make_caches_cold(places).warnings == []


def test_a_mount_in_another_namespace_keeps_a_file_system_warm() -> None:
    with small_disk(frozenset({"data"})) as disk:
        table = fill(disk.mounts["data"] / "table")
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None and other.stdout.readline() == b"\n"
                cold = page_cache.make_caches_cold([(Role.DATA, disk.mounts["data"])])
            finally:
                other.kill()
        assert f"{other.pid} (" in cold.not_remounted[Role.DATA]
        assert mounts.mount_at(disk.mounts["data"]) is not None
        assert resident_bytes(table) == 0


def test_a_file_system_of_the_user_is_never_unmounted() -> None:
    """Neither a real one, nor a disk that he made with ``tierwise disk up``."""
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from tierwise.device_models import profiles\n"
        "from tierwise.host.disk.disk import EmulatedDisk, Partition, WHOLE\n"
        "EmulatedDisk.up(sys.argv[1], profiles.load_profile('ssd-nvme-dc'), [Partition(WHOLE, 64 << 20)],"
        " Path(sys.argv[2]), owner='server')\n"
    )
    name = f"users-{os.getpid()}"
    with ledger.passage_directory("mnt", server_user(), ledger.run_dir()) as parent:
        subprocess.run([sys.executable, "-c", script, name, parent / "d"], check=True)
        try:
            table, before = fill(parent / "d" / "table"), mount_id(parent / "d")
            cold = page_cache.make_caches_cold([(Role.DATA, parent / "d")])
            assert (cold.remounted, cold.not_remounted) == ([], {})
            assert mount_id(parent / "d") == before
            assert resident_bytes(table) == 0
        finally:
            EmulatedDisk.find(name).down()


@pytest.mark.parametrize("call", ["cachestat", "mincore"])
def test_a_file_that_stays_warm_is_named(call: str, open_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a process has it mapped; before Linux 6.5 only mincore can say so."""
    if call == "mincore":
        monkeypatch.setattr("tierwise.host.page_cache._by_cachestat", lambda _: None)
    table, other = fill(open_path / "ta\x1b[2Jble"), fill(open_path / "other")
    with table.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE)) > 0
        cold = page_cache.make_caches_cold([(Role.DATA, open_path)])
    (warm,) = cold.warm
    assert (warm.role, warm.file, warm.resident_bytes) == (Role.DATA, "ta\\x1b[2Jble", 4 * MIB)
    assert cold.warnings == ["4,096 KiB of ta\\x1b[2Jble (data) stayed in the page cache"]
    assert resident_bytes(other) == 0
    assert results.ColdStart.model_validate_json(cold.model_dump_json()) == cold


@needs_root
def test_what_a_database_links_to_stays_in_the_page_cache(open_path: Path, production: Path) -> None:
    """Its account may write to its directory, while root empties the caches."""
    folder = open_path / "folder"
    folder.mkdir()
    other = fill(folder / "other")
    directory = open_path / "database"
    directory.mkdir()
    table = fill(directory / "table")
    (directory / "file").symlink_to(production)
    (directory / "linked").symlink_to(folder)
    os.mkfifo(directory / "pipe")
    with kept(production), kept(other):
        cold = page_cache.make_caches_cold([(Role.DATA, directory)])
    assert share_resident(table) == 0
    assert cold.warm == []
    assert resident_bytes(directory / "pipe") is None


def test_a_user_makes_cold_what_he_may_open(open_path: Path) -> None:
    table = fill(open_path / "table")
    cold = page_cache.drop_cached_pages([(Role.DATA, open_path)])
    assert resident_bytes(table) == 0
    assert (cold.dropped, cold.resident_bytes) == ("own files", 0)
    with table.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE)) > 0
        (warm,) = page_cache.drop_cached_pages([(Role.DATA, open_path)]).warm
    assert warm.file == "table"


def test_the_whole_machine_is_emptied_only_by_an_option(
    open_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study, which may be a stranger's, cannot ask for it."""
    switch = open_path / "switch"
    switch.write_text("")
    monkeypatch.setattr("tierwise.host.page_cache._DROP_CACHES", switch)
    chosen = tiny_study(own, "sqlite", "order_entry", "scale = 0.01\ntransactions = 10")
    (plan,) = plan_runs(chosen, 1)
    plain = execute_run(chosen, plan, 1, lambda _: None)
    assert (switch.read_text(), plain.cold_start and plain.cold_start.dropped) == ("", "own files")
    asked = execute_run(chosen, plan, 1, lambda _: None, drop_caches=True)
    assert (switch.read_text(), asked.cold_start and asked.cold_start.dropped) == ("3", "whole machine")
    with pytest.raises(TierwiseError, match="drop_caches"):
        tiny_study(own, "sqlite", "order_entry", "scale = 0.01\ntransactions = 10\ndrop_caches = true")
    assert not [name for name in study.Study.model_fields if "drop" in name]


def said(arguments: list[str], **variables: str) -> str:
    """What the command line prints of a command that is refused."""
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", **variables})
    assert result.exit_code != 0
    return f"{result.output} {result.exception}"


def test_the_option_has_to_be_typed(open_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a variable nor the file of defaults gives it; who may not is told before anything runs."""
    out = open_path / "results"
    run = ["study", "run", "commit-rate", "--dry-run", "-o", str(out)]
    validate = ["validate", "--estimate", "-o", str(out)]
    switch = open_path / "switch"
    switch.write_text("")
    monkeypatch.setattr("tierwise.host.page_cache._DROP_CACHES", switch)
    elsewhere = "--drop-caches comes from a variable"
    assert elsewhere in said(run, TIERWISE_STUDY_RUN_DROP_CACHES="1")
    assert elsewhere in said(validate, TIERWISE_VALIDATE_DROP_CACHES="1")
    (tmp_path / "tierwise").mkdir()
    (tmp_path / "tierwise" / "config.toml").write_text("[study.run]\ndrop-caches = true\n")
    assert elsewhere in said(run, XDG_CONFIG_HOME=str(tmp_path))
    hosts = ["study", "run", "commit-rate", "--hosts", "tcp://127.0.0.1:1", "-o", str(out)]
    assert "this machine only" in said([*hosts, "--drop-caches"])
    monkeypatch.setattr("tierwise.host.page_cache._DROP_CACHES", open_path / "nowhere")
    assert "may not drop the caches" in said([*run, "--drop-caches"])
    assert "may not drop the caches" in said([*validate, "--drop-caches"])
    assert not out.exists() and not switch.read_text()


def test_no_other_code_drops_the_caches_of_the_machine() -> None:
    """Not in the package, the crates, the tests, the benchmarks or the checks in guests."""
    switch = re.compile(r"vm[./]drop_caches")
    texts = [
        path.relative_to(ROOT).as_posix()
        for part in ("python", "crates", "tests", "benchmarks", "compat", "tools", "examples")
        for path in (ROOT / part).rglob("*")
        if path.suffix in {".py", ".rs", ".sh", ".toml", ".c", ".txt"} and path.is_file()
        if switch.search(path.read_text("utf-8", "replace")) and path != Path(__file__)
    ]
    assert texts == ["python/tierwise/host/page_cache.py"]
