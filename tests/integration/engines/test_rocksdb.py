"""RocksDB: the objects' operations, their durability, and its options by name."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.engine_contract import until
from support.paths import TESTS
from support.rocksdb_pilots import INSERT, PILOT, opened
from tierwise.lab.engines.objects import object_store
from tierwise.lab.engines.objects.object_dialect import Value, parse_kind
from tierwise.lab.engines.objects.object_store import ObjectClient
from tierwise.lab.engines.rocksdb.adapter import GroupCommit, RocksAdapter
from tierwise.lab.engines.rocksdb.file_roles import rocksdb_file_role
from tierwise.model.errors import StatementError, TierwiseError
from tierwise.model.placement import Role


@pytest.fixture
def adapter(tmp_path: Path) -> Iterator[RocksAdapter]:
    made = opened(tmp_path)
    made.execute(PILOT)
    yield made
    made.close()


def run(client: ObjectClient, text: str, sum_column: str | None = None, **given: Value) -> tuple[int, int]:
    number = len(client._operations)
    client.prepare(text, list(given))
    return client.execute(number, tuple(given.values()), sum_column)


def insert(client: ObjectClient, key: int, name: str, points: int = 1) -> None:
    assert run(client, INSERT, id=key, name=name, points=points) == (1, 0)


def count_of(client: ObjectClient, name: str) -> int:
    return run(client, "FIND pilot (name) VALUES (:name)", name=name)[0]


def test_every_operation_does_what_its_name_says(adapter: RocksAdapter) -> None:
    client = adapter.connect()
    for key in range(1, 11):
        insert(client, key, f"Jonny_{key % 2}", points=key)
    assert run(client, "SCAN pilot", "points") == (10, 55)
    assert run(client, "SCAN pilot LIMIT 3", "id") == (3, 6)
    assert run(client, "GET pilot (id) VALUES (:id)", "points", id=7) == (1, 7)
    assert run(client, "GET pilot (id) VALUES (:id)", id=11) == (0, 0)
    assert run(client, "FIND pilot (name) VALUES (:name)", "points", name="Jonny_0") == (5, 30)
    assert run(client, "FIND pilot (points) VALUES (?)", "id", points=4) == (1, 4)
    assert run(client, "UPDATE pilot (name) VALUES (:name) KEY (:id)", name="JONNY", id=4)[0] == 1
    assert run(client, "UPDATE pilot (name) VALUES (:name) KEY (:id)", name="JONNY", id=44)[0] == 0
    assert (count_of(client, "Jonny_0"), count_of(client, "JONNY")) == (4, 1)
    assert run(client, "DELETE pilot KEY (:id)", id=4)[0] == 1
    assert run(client, "DELETE pilot KEY (:id)", id=4)[0] == 0
    assert count_of(client, "JONNY") == 0
    assert run(client, "SCAN pilot", "points") == (9, 51)


def test_a_transaction_sees_its_own_changes_and_others_do_not(adapter: RocksAdapter) -> None:
    client, other = adapter.connect(), adapter.connect()
    insert(client, 1, "kept")
    client.begin()
    insert(client, 2, "new")
    run(client, "DELETE pilot KEY (:id)", id=1)
    assert run(client, "SCAN pilot", "id") == (1, 2)
    assert (count_of(client, "new"), count_of(client, "kept")) == (1, 0)
    assert run(other, "SCAN pilot", "id") == (1, 1)
    client.rollback()
    assert run(client, "SCAN pilot", "id") == (1, 1)
    assert (count_of(client, "new"), count_of(client, "kept")) == (0, 1)


def test_changes_of_one_object_wait_for_one_another(adapter: RocksAdapter) -> None:
    first, second = adapter.connect(), adapter.connect()
    insert(first, 1, "a")
    first.begin()
    run(first, "UPDATE pilot (name) VALUES (:name) KEY (:id)", name="b", id=1)
    second.begin()
    with pytest.raises(StatementError, match="lock") as caught:
        run(second, "UPDATE pilot (name) VALUES (:name) KEY (:id)", name="c", id=1)
    assert caught.value.retry
    second.rollback()
    first.commit()
    run(second, "UPDATE pilot (name) VALUES (:name) KEY (:id)", name="c", id=1)
    assert (count_of(first, "a"), count_of(first, "b"), count_of(first, "c")) == (0, 0, 1)


def test_appended_rows_are_found_by_key_and_index(adapter: RocksAdapter) -> None:
    client = adapter.connect()
    rows: list[tuple[Value, ...]] = [(f"n{key % 7}", key, 1) for key in range(12_000)]
    assert client.append("pilot", ["name", "id", "points"], rows) == 12_000
    assert run(client, "SCAN pilot", "points") == (12_000, 12_000)
    assert count_of(client, "n3") == sum(key % 7 == 3 for key in range(12_000))


def test_a_scan_is_stopped_at_its_cap(adapter: RocksAdapter) -> None:
    client = adapter.connect()
    client.append("pilot", ["id", "name", "points"], [(key, "x", 1) for key in range(5_000)])
    client.set_cap(0.0)
    with pytest.raises(StatementError) as caught:
        run(client, "SCAN pilot")
    assert caught.value.capped
    client.set_cap(None)
    assert run(client, "SCAN pilot")[0] == 5_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT 1", "no operation on objects"),
        ("SCAN nothing", "no objects of the kind nothing"),
        ("UPDATE pilot (height) VALUES (:id) KEY (:id)", "has no field height"),
    ],
)
def test_an_operation_that_makes_no_sense_is_refused(adapter: RocksAdapter, text: str, problem: str) -> None:
    with pytest.raises(StatementError, match=problem):
        adapter.connect().prepare(text, ["id"])


def test_an_object_that_exists_is_not_overwritten(adapter: RocksAdapter) -> None:
    client = adapter.connect()
    insert(client, 1, "a")
    with pytest.raises(StatementError, match="pilot 1 exists"):
        insert(client, 1, "b")


def test_keys_sort_as_their_values_do() -> None:
    kind = parse_kind("OBJECT a KEY b FIELDS (b integer)", 0)
    for values in (
        [-(2**40), -1, 0, 1, 255, 256, 2**40],
        ["", "a", "a\0", "a\0b", "aa", "b"],
        [-2.5, -0.5, 0.0, 3.25],
    ):
        keys = [object_store.object_key(kind, value) for value in values]
        assert keys == sorted(keys)
        assert not any(longer.startswith(key) for key, longer in itertools.pairwise(keys))


def test_clients_that_wait_for_the_same_flush_share_it() -> None:
    flushes, begun, goes_on = [], threading.Event(), threading.Event()

    def flush() -> None:
        flushes.append(1)
        begun.set()
        goes_on.wait(60)

    group = GroupCommit(flush)
    waits = [threading.Thread(target=group.wait) for _ in range(10)]
    waits[0].start()
    begun.wait(60)
    for wait in waits[1:]:
        wait.start()
    until(lambda: group._written == len(waits))
    goes_on.set()
    for wait in waits:
        wait.join()
    assert len(flushes) == 2


def test_a_failed_flush_is_told_to_its_own_client_alone() -> None:
    outcomes = iter([OSError("the device is gone"), None])

    def flush() -> None:
        if error := next(outcomes):
            raise error

    group = GroupCommit(flush)
    with pytest.raises(OSError, match="gone"):
        group.wait()
    group.wait()


def test_each_role_has_its_files_and_they_are_told_by_name(tmp_path: Path) -> None:
    adapter = opened(tmp_path)
    adapter.execute(PILOT)
    adapter.connect().append("pilot", ["id", "name", "points"], [(key, "x", 1) for key in range(1_000)])
    adapter.checkpoint()
    for role in (Role.LOG, Role.DATA, Role.SYSTEM):
        names = list((tmp_path / role).iterdir())
        assert names, role
        assert {rocksdb_file_role(path) for path in names} == {role}, names
    assert not [path for path in (tmp_path / "home").iterdir() if path.is_file() and rocksdb_file_role(path)]
    adapter.close()


@pytest.mark.parametrize(("name", "value"), [("ttl", "1h"), ("max_open_files", "many")])
def test_a_text_in_place_of_a_number_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name}: '{value}' is no whole number"):
        opened(tmp_path, {name: value})


@pytest.mark.parametrize(("name", "value"), [("write_buffer_size", "-1"), ("filter_policy", "bloom")])
def test_a_value_that_rocksdb_replaces_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name}: RocksDB takes '{value}' as "):
        opened(tmp_path, {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write_buffer_size", "2M"),
        ("max_bytes_for_level_multiplier", "8"),
        ("filter_policy", "bloomfilter:10:false"),
        ("compression", "kLZ4Compression"),
        ("max_open_files", "-1"),
        ("optimize_filters_for_hits", "true"),
        ("level_compaction_dynamic_level_bytes", "0"),
        ("bottommost_compression", "kZSTD"),
        ("compaction_style", "kCompactionStyleUniversal"),
    ],
)
def test_values_that_rocksdb_takes_are_set(name: str, value: str, tmp_path: Path) -> None:
    opened(tmp_path, {name: value}).close()


def test_options_are_set_by_name_and_survive_a_restart(tmp_path: Path) -> None:
    settings = {"write_buffer_size": "1048576", "block_size": "8192", "block_cache": "2097152"}
    opened(tmp_path, settings).close()
    adapter = opened(tmp_path, settings, memory=1 << 28)
    shown = adapter.settings()
    assert {name: shown[name] for name in settings} == settings
    assert shown["db_write_buffer_size"] == str(1 << 26)
    assert adapter.counters().page_bytes == 8192
    adapter.close()


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("write_bufer_size", "1", "did you mean write_buffer_size"),
        ("write_buffer_size", "many", "whole number"),
        ("block_cache", "big", "whole number"),
    ],
)
def test_a_bad_option_is_named(tmp_path: Path, name: str, value: str, fix: str) -> None:
    with pytest.raises(TierwiseError, match=f"setting {name}") as caught:
        opened(tmp_path, {name: value})
    assert fix in caught.value.fix


def test_counters_tell_log_blocks_and_commits(adapter: RocksAdapter) -> None:
    client = adapter.connect()
    before = adapter.counters()
    client.append(
        "pilot", ["id", "name", "points"], [(key, os.urandom(50).hex(), 1) for key in range(20_000)]
    )
    adapter.checkpoint()
    for key in range(0, 20_000, 100):
        run(client, "GET pilot (id) VALUES (:id)", id=key)
    done = adapter.counters().since(before)
    assert done.log_bytes is not None and done.log_bytes > 20_000 * 100
    assert done.commits == 4
    assert done.logical_reads is not None and done.pages_read is not None
    assert done.logical_reads >= 200 and 0 < done.pages_read <= done.logical_reads
    assert done.pages_written is not None and done.pages_written > 20_000 * 100 / 4096 / 4


def test_the_file_of_named_options_is_none_of_the_database() -> None:
    assert rocksdb_file_role(Path("/tmp/rocksdb-home-ab/own/options/OPTIONS-000001")) is None
    assert rocksdb_file_role(Path("/mnt/hdd/rocksdb-data-ab/OPTIONS-000007")) is Role.SYSTEM


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, sys
sys.path.insert(0, {str(TESTS)!r})
from support.rocksdb_pilots import INSERT, PILOT, opened
from tierwise.model.placement import Role
adapter = opened(pathlib.Path({str(tmp_path)!r}))
adapter.execute(PILOT)
client = adapter.connect()
client.prepare(INSERT, ["id", "name", "points"])
for key in range(100_000):
    client.begin()
    client.execute(0, (2 * key, "x", 1), None)
    client.execute(0, (2 * key + 1, "x", 1), None)
    client.commit()
    os.write(1, b"%d\\n" % key)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(300)]
        writer.kill()
        lines += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
    adapter = opened(tmp_path)
    rows, total = run(adapter.connect(), "SCAN pilot", "id")
    adapter.close()
    assert rows >= 2 * len(lines)
    assert rows % 2 == 0, "half a transaction"
    assert total == rows * (rows - 1) // 2
