"""The contract of ``tierwise.lab.engines.base.Engine`` on a running database, one for all tests of an engine.

Every test finds it with ``ROWS`` rows at least, numbered from 1, and leaves it running.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.engine_cases import CASES
from support.engine_contract import (
    BODY_BYTES,
    ROWS,
    EngineCase,
    Load,
    bytes_under,
    files_under,
    ledger_names,
    open_directory,
    places_in,
    resident_pages,
    rows_of,
    until,
    wait_until_down,
)
from tierwise.lab.engines.base import Engine
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import ROLES_OF_FILES, Role
from tierwise.results.measurements import Counters
from tierwise.results.wait_sampling import CLASSES


@dataclass
class Served:
    """A database that runs, each of its roles in a place of its own, and what filling and a scan did."""

    case: EngineCase
    engine: Engine
    directory: Path
    filling: Counters
    grown: dict[Role, int]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    case: EngineCase = request.param
    if reason := case.missing():
        pytest.skip(reason)
    held = ledger_names()
    with open_directory() as directory:
        with case.create(plain=False) as engine:
            engine.init(places_in(directory, engine.roles))
            engine.start()
            yield _fill(case, engine, directory)
        assert ledger_names() == held
        assert not files_under(directory)


def _fill(case: EngineCase, engine: Engine, directory: Path) -> Served:
    sizes = {role: bytes_under(path) for role, path in engine.directories.items()}
    before = engine.counters()
    case.fill(engine)
    rows_of(case, engine)
    grown = {role: bytes_under(path) - sizes[role] for role, path in engine.directories.items()}
    return Served(case, engine, directory, engine.counters().since(before), grown)


@pytest.fixture(autouse=True)
def gap(request: pytest.FixtureRequest, served: Served) -> None:
    """A declared gap skips its test, with the engine's own reason."""
    if reason := served.case.reason(request.node.originalname):
        pytest.skip(reason)


def test_each_role_has_a_new_directory_under_its_place(served: Served) -> None:
    assert served.engine.directories.keys() == served.engine.roles
    for role, made in served.engine.directories.items():
        assert made.parent == served.directory / role
        assert sorted(path.name for path in made.parent.iterdir()) == sorted([made.name, "lost+found"])


def test_each_role_is_placed_or_a_gap(served: Served) -> None:
    gaps = set(ROLES_OF_FILES) - served.engine.roles
    assert {role for role in Role if role in served.engine.unsupported} == gaps
    assert all(served.engine.unsupported.values())


def test_what_a_statement_creates_goes_to_its_role(served: Served) -> None:
    for role in {Role.DATA, Role.INDEX} & served.engine.roles:
        assert served.grown[role] > ROWS * BODY_BYTES / 2, role
    assert served.grown[Role.SYSTEM] < ROWS * 20


def test_every_file_has_the_role_of_its_place(served: Served) -> None:
    for role, directory in served.engine.directories.items():
        roles = {path: served.engine.role_of(path) for path in files_under(directory)}
        assert not {path for path, file_role in roles.items() if file_role not in (role, None)}, role
        if role in {Role.LOG, Role.DATA, Role.INDEX, Role.SYSTEM} - served.engine.inside.keys():
            assert role in roles.values(), role
    assert served.engine.role_of(Path("/proc/self/exe").resolve()) is None


def test_a_file_elsewhere_keeps_its_role(served: Served) -> None:
    """So a file that went astray is found: its role is not that of the directory where it lies."""
    for role in served.engine.directories.keys() - {Role.SYSTEM}:
        other = served.engine.directories[Role.SYSTEM] / "astray"
        directory = served.engine.directories[role]
        for path in files_under(directory):
            if served.engine.role_of(path) == role:
                assert served.engine.role_of(other / path.relative_to(directory)) == role, path


def test_settings_and_limits_reach_the_server(served: Served) -> None:
    name, _, shown = served.case.setting
    settings = served.engine.settings()
    assert settings[name] == shown
    assert {name: settings[name] for name in served.case.shown_limits} == served.case.shown_limits
    if not served.case.shown_limits:
        assert {"memory", "parallelism"} <= served.engine.unsupported.keys()
    assert served.engine.version()[0].isdecimal()


def test_counters_grow_with_the_work(served: Served) -> None:
    done = served.filling
    assert not {name for name, value in done if (value is None) != (name in served.engine.unsupported)}
    assert done.log_bytes is None or done.log_bytes > ROWS * BODY_BYTES / 2
    assert done.logical_reads is None or done.logical_reads > ROWS / 1000
    assert done.cpu_s is None or 0.02 < done.cpu_s < 60
    assert done.commits is None or 0 < done.commits < ROWS
    for name, value in done:
        assert value is None or value >= 0, name


def test_the_processes_are_those_of_the_server(served: Served) -> None:
    pids = served.engine.processes()
    assert served.engine.server_pid in pids
    until(lambda: all(Path(f"/proc/{pid}").exists() for pid in served.engine.processes()))  # some end by then
    assert os.getpid() not in pids


def test_a_lap_adds_up_what_its_steps_return(served: Served) -> None:
    before = rows_of(served.case, served.engine)
    first = before + 1
    with Load(served.case, served.engine, clients=2, first=first) as load:
        inserted = load.lap("insert", transactions=10)
        assert inserted["checksum"] == sum(range(first, first + 10))
        assert inserted["rows"] == inserted["transactions"] == 10
        assert not inserted["capped"]
    with Load(served.case, served.engine, first=first) as load:
        assert load.lap("get")["checksum"] == first
        load.clients.reconnect()
        assert load.lap("update")["checksum"] == 1
    with Load(served.case, served.engine, first=first) as load:
        assert load.lap("delete", transactions=10)["rows"] == 10
    assert rows_of(served.case, served.engine) == before


def test_a_capped_statement_is_stopped_and_its_session_goes_on(served: Served) -> None:
    name, transactions = served.case.statements.endless
    with Load(served.case, served.engine) as load:
        began_s = time.monotonic()
        assert load.lap(name, transactions, cap_s=0.3)["capped"]
        assert 0.2 < time.monotonic() - began_s < 20
        lap = load.lap("get")
    assert (lap["checksum"], lap["capped"]) == (1, False)


def test_a_wrong_statement_is_one_line(served: Served) -> None:
    with pytest.raises(TierwiseError, match="nowhere") as caught:
        served.engine.execute_schema([served.case.statements.wrong])
    assert "\n" not in str(caught.value)


def test_idle_sessions_wait_for_their_client(served: Served) -> None:
    nobody = served.engine.sampler()
    nobody.start()
    time.sleep(0.15)
    assert nobody.stop() is None
    assert nobody.failure is None

    sampler = served.engine.sampler()
    with Load(served.case, served.engine, clients=2) as load:
        load.lap("get", transactions=2)
        sampler.start()
        time.sleep(0.5)
        profile = sampler.stop()
    assert profile is not None
    assert profile.samples == 2 * profile.ticks
    assert profile.shares["client"].share > 0.9
    assert 0 <= sampler.engine_cpu_s < 0.5


def test_the_shares_of_a_wait_profile_add_up(served: Served) -> None:
    sampler = served.engine.sampler()
    with Load(served.case, served.engine, clients=2) as load:
        sampler.start()
        for _ in range(3):
            load.lap(served.case.statements.endless[0], 1_000_000, cap_s=0.3)
        profile = sampler.stop()
    assert profile is not None and sampler.failure is None
    assert set(profile.shares) == set(CLASSES)
    assert sum(part.share for part in profile.shares.values()) == pytest.approx(1)
    assert profile.shares["cpu"].share > 0.05
    assert profile.ticks > 5, "a busy machine samples seldom"


def test_a_cold_restart_empties_both_caches(served: Served) -> None:
    """A session may hand in its counts some time after its work."""
    engine, table = served.engine, served.engine.directories[Role.DATA]
    engine.stop()
    for file in files_under(table):
        file.read_bytes()
    assert resident_pages(table) > 100
    engine.start()
    engine.restart_cold()
    assert engine.running
    assert resident_pages(table) < 100
    before = engine.counters()
    assert rows_of(served.case, engine) >= ROWS
    until(lambda: _read_bytes(engine.counters().since(before)) >= ROWS * BODY_BYTES / 4)


def _read_bytes(done: Counters) -> float:
    """Infinite if the engine cannot tell."""
    return float("inf") if done.pages_read is None else done.pages_read * (done.page_bytes or 0)


def test_an_orderly_stop_keeps_what_was_done(served: Served) -> None:
    before = rows_of(served.case, served.engine)
    served.engine.stop()
    assert not served.engine.running
    assert served.engine.processes() == []
    with pytest.raises(TierwiseError, match="does not run"):
        served.engine.execute_schema(served.case.statements.schema)
    served.engine.stop()
    served.engine.start()
    served.engine.start()
    assert rows_of(served.case, served.engine) == before


@pytest.mark.parametrize("end", ["crash_stop", "kill"])
def test_a_crash_loses_nothing_that_was_acknowledged(served: Served, end: str) -> None:
    engine, before = served.engine, rows_of(served.case, served.engine)
    with Load(served.case, engine, first=before + 1) as load:
        acknowledged = load.lap("insert", transactions=5)["rows"]
        working = threading.Thread(target=_work_until_it_ends, args=(load,))
        working.start()
        time.sleep(0.1)
        _end(engine, end)
        working.join()
    assert not engine.running
    engine.crash_stop()
    engine.start()
    assert rows_of(served.case, engine) >= before + acknowledged


def _work_until_it_ends(load: Load) -> None:
    with contextlib.suppress(TierwiseError):
        load.lap("insert", transactions=1_000_000, cap_s=20)


def _end(engine: Engine, how: str) -> None:
    if how == "crash_stop":
        engine.crash_stop()
        return
    for pid in engine.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until_down(engine)


def test_a_sampler_outlived_by_its_engine_says_so(served: Served) -> None:
    sampler = served.engine.sampler()
    sampler.start()
    time.sleep(0.1)
    served.engine.crash_stop()
    until(lambda: sampler.failure is not None)
    assert sampler.stop() is None
    assert sampler.failure is not None
    served.engine.start()
