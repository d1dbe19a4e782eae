"""The contract of ``tierwise.engines.base.Engine``, on every engine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_contract import (
    CASES,
    FILL,
    ROWS,
    SCHEMA,
    EngineCase,
    bytes_under,
    files_under,
    ledger_names,
    open_directory,
    places_in,
    resident_pages,
)

from tierwise import engines
from tierwise.engines.base import Engine
from tierwise.errors import TierwiseError
from tierwise.host import clean, ledger
from tierwise.roles import Role
from tierwise.wait_sampling import CLASSES


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> EngineCase:
    chosen: EngineCase = request.param
    assert chosen.gaps.keys() <= globals().keys(), "a gap names no test"
    if reason := chosen.gaps.get(request.node.originalname) or chosen.missing():
        pytest.skip(reason)
    return chosen


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as path:
        yield path


@pytest.fixture
def engine(case: EngineCase, directory: Path) -> Iterator[Engine]:
    """A started engine, each of its roles in a place of its own; it must leave nothing behind."""
    before = ledger_names()
    with engines.create(case.name) as made:
        made.init(places_in(directory, made.roles))
        made.start()
        yield made
    assert ledger_names() == before
    assert not files_under(directory)


def fill(engine: Engine, rows: int = ROWS) -> None:
    engine.execute_schema([*SCHEMA, (Role.DATA, FILL.format(rows=rows))])
    engine.checkpoint()


def count(case: EngineCase, engine: Engine) -> int:
    with case.connect(engine) as run:
        return int(run("SELECT count(*) FROM item")[0][0])


def test_each_role_has_a_new_directory_under_its_place(engine: Engine, directory: Path) -> None:
    assert engine.directories.keys() == engine.roles
    for role, made in engine.directories.items():
        assert made.parent == directory / role
        assert sorted(path.name for path in made.parent.iterdir()) == sorted([made.name, "lost+found"])


def test_what_a_statement_creates_goes_to_its_role(engine: Engine) -> None:
    before = {role: bytes_under(path) for role, path in engine.directories.items()}
    fill(engine)
    grown = {role: bytes_under(path) - before[role] for role, path in engine.directories.items()}
    assert grown[Role.DATA] > ROWS * 50
    assert grown[Role.INDEX] > ROWS * 50
    assert grown[Role.SYSTEM] < ROWS * 10


def test_all_roles_may_share_a_place(case: EngineCase, directory: Path) -> None:
    with engines.create(case.name) as engine:
        engine.init(dict.fromkeys(engine.roles, directory))
        engine.start()
        fill(engine, rows=10)
        assert count(case, engine) == 10


def test_only_the_system_must_have_a_place(case: EngineCase, directory: Path) -> None:
    with engines.create(case.name) as engine:
        engine.init({Role.SYSTEM: directory})
        engine.start()
        fill(engine, rows=10)
        assert count(case, engine) == 10


def test_a_role_that_cannot_be_placed_is_refused(case: EngineCase, directory: Path) -> None:
    engine = engines.create(case.name)
    foreign = next(role for role in Role if role not in engine.roles)
    with pytest.raises(TierwiseError, match=f"engine {case.name} cannot place the role {foreign}") as caught:
        engine.init({Role.SYSTEM: directory, foreign: directory})
    assert all(role in caught.value.fix for role in engine.roles)
    assert not list(directory.iterdir())


def test_a_place_that_is_not_there_is_refused(case: EngineCase, directory: Path) -> None:
    with pytest.raises(TierwiseError, match="nowhere is not a directory"):
        engines.create(case.name).init({Role.SYSTEM: directory / "nowhere"})


def test_the_system_needs_a_place(case: EngineCase, directory: Path) -> None:
    with pytest.raises(TierwiseError, match="no place for the role system"):
        engines.create(case.name).init({Role.DATA: directory})


def test_an_orderly_stop_keeps_what_was_done(case: EngineCase, engine: Engine) -> None:
    fill(engine, rows=100)
    engine.stop()
    assert not engine.running
    engine.stop()
    engine.start()
    engine.start()
    assert count(case, engine) == 100


def test_a_crash_loses_nothing_that_was_committed(case: EngineCase, engine: Engine) -> None:
    fill(engine, rows=100)
    with case.connect(engine) as run:
        run("INSERT INTO item VALUES (101, 'after the checkpoint')")
        engine.crash_stop()
    assert not engine.running
    engine.crash_stop()
    engine.start()
    assert count(case, engine) == 101


def test_a_cold_restart_empties_the_page_cache(case: EngineCase, engine: Engine) -> None:
    fill(engine)
    engine.stop()
    table = engine.directories[Role.DATA]
    for file in files_under(table):
        file.read_bytes()
    assert resident_pages(table) > 100
    engine.start()
    engine.restart_cold()
    assert engine.running
    assert resident_pages(table) == 0
    assert count(case, engine) == ROWS


def test_counters_grow_with_the_work(case: EngineCase, engine: Engine) -> None:
    before = engine.counters()
    fill(engine)
    done = engine.counters().since(before)
    for name, value in done:
        assert value is None or value >= 0, name
    assert done.log_bytes is None or done.log_bytes > ROWS * 50
    assert done.logical_reads is None or done.logical_reads > ROWS / 100
    assert done.cpu_s is None or 0.05 < done.cpu_s < 60


def test_reads_from_a_cold_buffer_are_misses(case: EngineCase, engine: Engine) -> None:
    """A session may hand in its counts some time after its work."""
    fill(engine)
    engine.restart_cold()
    before = engine.counters()
    assert count(case, engine) == ROWS
    deadline_s = time.monotonic() + 10
    while (engine.counters().since(before).pages_read or 0) < 100:
        assert time.monotonic() < deadline_s, engine.counters().since(before)
        time.sleep(0.1)


def test_settings_reach_the_server_and_are_recorded(case: EngineCase, directory: Path) -> None:
    name, value, shown = case.setting
    with engines.create(case.name, {name: value}) as engine:
        engine.init({Role.SYSTEM: directory})
        engine.start()
        assert engine.settings()[name] == shown
        assert len(engine.settings()) > 20
        assert engine.version()[0].isdecimal()


@pytest.mark.parametrize("fault", ["unknown", "value"])
def test_a_bad_setting_is_named(case: EngineCase, directory: Path, fault: str) -> None:
    name, value = case.bad_value if fault == "value" else (case.bad_value[0] + "x", "1")
    before = ledger_names()
    with pytest.raises(TierwiseError, match=f"setting {name}") as caught:
        engines.create(case.name, {name: value}).init({Role.SYSTEM: directory})
    assert "\n" not in str(caught.value)
    if fault == "unknown":
        assert case.bad_value[0] in caught.value.fix
    assert ledger_names() == before
    assert not list(directory.iterdir())


def test_a_statement_for_a_server_that_is_down_is_refused(engine: Engine) -> None:
    engine.stop()
    with pytest.raises(TierwiseError, match="does not run"):
        engine.execute_schema(SCHEMA)


def test_a_wrong_statement_is_one_line(engine: Engine) -> None:
    with pytest.raises(TierwiseError, match="nowhere") as caught:
        engine.execute_schema([(Role.DATA, "INSERT INTO nowhere VALUES (1)")])
    assert "\n" not in str(caught.value)


def test_the_sampler_sees_sessions_of_the_load_alone(case: EngineCase, engine: Engine) -> None:
    idle = engine.sampler()
    idle.start()
    time.sleep(0.3)
    assert idle.stop() is None
    assert idle.failure is None

    sampler = engine.sampler()
    with case.connect(engine) as first, case.connect(engine) as second:
        first("SELECT 1"), second("SELECT 1")
        sampler.start()
        time.sleep(1.5)
        profile = sampler.stop()
    assert profile is not None
    assert profile.rate_hz >= 50
    assert profile.samples == 2 * profile.ticks
    assert set(profile.shares) == set(CLASSES)
    assert profile.shares["client"].share > 0.9
    assert 0 < sampler.own_cpu_s < 0.5


def test_a_sampler_outlived_by_its_engine_says_so(case: EngineCase, engine: Engine) -> None:
    sampler = engine.sampler()
    sampler.start()
    time.sleep(0.1)
    engine.crash_stop()
    time.sleep(0.2)
    assert sampler.stop() is None
    assert sampler.failure is not None


def test_a_full_device_is_one_line(case: EngineCase, directory: Path, small_device: Path) -> None:
    before = ledger_names()
    with engines.create(case.name) as engine:
        engine.init({Role.SYSTEM: directory, Role.DATA: small_device})
        engine.start()
        with pytest.raises(TierwiseError, match="No space left on device") as caught:
            fill(engine, rows=2_000_000)
        assert "space" in caught.value.fix
        assert "\n" not in str(caught.value)
    with pytest.raises(TierwiseError, match="No space left on device"):
        engines.create(case.name).init({Role.SYSTEM: small_device})
    assert ledger_names() == before


@pytest.fixture
def small_device() -> Iterator[Path]:
    """A file system of 8 MiB."""
    with open_directory() as path:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tierwise-test", path],
            capture_output=True,
            check=False,
        )
        if mounted.returncode:
            pytest.skip("cannot mount a small file system: needs root")
        try:
            yield path
        finally:
            subprocess.run(["umount", path], check=True)


def test_a_killed_owner_leaves_only_what_the_ledger_names(case: EngineCase, directory: Path) -> None:
    script = f"""
import os, pathlib
from tierwise import engines
from tierwise.roles import Role
engine = engines.create({case.name!r})
engine.init(dict.fromkeys(engine.roles, pathlib.Path({str(directory)!r})))
engine.start()
print(engine.server_pid, flush=True)
os.kill(os.getpid(), 9)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    server_pid = int(told.stdout)
    assert Path(f"/proc/{server_pid}").exists()
    clean.clean()
    assert ledger.Identity.of(server_pid) is None
    assert not list(directory.iterdir())


def test_an_unknown_engine_is_named_with_its_neighbour() -> None:
    with pytest.raises(TierwiseError, match="engine 'postgress' is unknown: did you mean postgres"):
        engines.create("postgress")
