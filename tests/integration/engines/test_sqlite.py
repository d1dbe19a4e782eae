"""What SQLite alone has: two kinds of log, PRAGMAs as settings, a cache for each client."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.engine_cases.sqlite import CASES
from support.engine_contract import Load, files_under, open_directory, places_in, rows_of
from tierwise.lab import engines
from tierwise.lab.engines.base import Engine, ResourceLimits
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role

CASE = CASES[0]
ROWS = 3000


@contextmanager
def running(limits: ResourceLimits | None = None, **settings: str) -> Iterator[Engine]:
    with open_directory() as directory, engines.create_engine("sqlite", settings) as engine:
        engine.limits = limits or ResourceLimits()
        engine.init(places_in(directory, engine.roles))
        engine.start()
        yield engine


@pytest.mark.parametrize("mode", ["wal", "delete", "persist"])
def test_a_change_is_logged_where_the_kind_of_log_has_its_place(mode: str) -> None:
    with running(journal_mode=mode) as engine:
        before = engine.counters()
        CASE.fill(engine, ROWS)
        done = engine.counters().since(before)
        named = {path.name: role for role, path in engine.directories.items()}
        logs = {(named[path.parent.name], path.name) for path in files_under_all(engine)}
        assert engine.settings()["journal_mode"] == mode
    logged, unlogged = done.log_bytes or 0, done.doublewrite_bytes or 0
    if mode == "wal":
        assert (Role.LOG, "tierwise.wal") in logs
        assert logged > ROWS * 100 and done.doublewrite_bytes == 0
    else:
        assert ((Role.DOUBLEWRITE, "tierwise.journal") in logs) == (mode != "delete")
        assert unlogged > 0 and done.log_bytes == 0
    assert (Role.DATA, "tierwise.db") in logs


def files_under_all(engine: Engine) -> list[Path]:
    return [path for made in engine.directories.values() for path in files_under(made)]


def test_what_a_sort_spills_is_counted_as_temporary() -> None:
    with running(cache_size="10") as engine:
        CASE.fill(engine, ROWS * 5)
        before = engine.counters()
        engine.execute_schema(
            [(Role.DATA, "CREATE TABLE sorted AS SELECT body FROM item ORDER BY substr(body, 7)")]
        )
        spilled = engine.counters().since(before).temp_bytes
        assert spilled is not None and spilled > ROWS * 5 * 100


def test_a_device_that_refuses_is_named_by_role() -> None:
    with running(journal_mode="delete") as engine:
        assert engine.failure() is None
        shutil.rmtree(engine.directories[Role.DOUBLEWRITE])
        with pytest.raises(TierwiseError, match=r"open of doublewrite.*No such file or directory") as caught:
            engine.execute_schema(CASE.statements.schema)
        assert "\n" not in str(caught.value)
        assert "open of doublewrite" in (engine.failure() or "")
        engine.directories[Role.DOUBLEWRITE].mkdir()


def test_a_cold_page_is_read_once_by_each_client() -> None:
    """Each connection has a cache of its own."""
    with running(cache_size="10000") as engine:
        CASE.fill(engine, ROWS)
        engine.restart_cold()
        before = engine.counters()
        with Load(CASE, engine, clients=2) as load:
            load.lap("scan", transactions=2)
            once = engine.counters().since(before)
            load.lap("scan", transactions=4)
            again = engine.counters().since(before)
        assert once.pages_read is not None and once.page_bytes is not None
        assert once.pages_read * once.page_bytes > 2 * ROWS * 100
        assert again.pages_read == once.pages_read
        assert (again.logical_reads or 0) > 2 * (once.logical_reads or 0)


def test_all_clients_share_the_memory_that_the_engine_is_given() -> None:
    limits = ResourceLimits(memory_bytes=32 << 20, parallelism=4)
    with running(limits) as engine:
        settings = engine.settings()
        assert settings["cache_size"] == str(-(8 << 10))
        assert settings["soft_heap_limit"] == str(8 << 20)
        assert settings["threads"] == "3"
    with running(limits, cache_size="-4096", threads="0") as engine:
        settings = engine.settings()
        assert (settings["cache_size"], settings["threads"]) == ("-4096", "0")
        assert settings["soft_heap_limit"] == "0"


def test_pages_are_of_the_size_that_is_asked_for() -> None:
    with running(page_size="16384", auto_vacuum="full") as engine:
        assert engine.counters().page_bytes == 16384
        assert engine.settings()["auto_vacuum"] == "full"
        assert engine.settings()["journal_mode"] == "wal"


def test_a_scan_finds_what_an_emptied_log_held() -> None:
    with running(wal_autocheckpoint="0") as engine:
        CASE.fill(engine, ROWS)
        with Load(CASE, engine, first=ROWS + 1) as load:
            load.lap("insert", transactions=3)
        engine.stop()
        assert not (engine.directories[Role.LOG] / "tierwise.wal").exists()
        engine.start()
        assert rows_of(CASE, engine) == ROWS + 3
