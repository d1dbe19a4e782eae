"""The work of a fleet without a cluster: profiles that travel, rows on disk, processors that count."""

from __future__ import annotations

import os
import pickle
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.fleet_factory import EXAMPLES, GP3, NVME, database, option
from tierwise.advise import Goal, PaymentTerms
from tierwise.fleet.database_options import DatabaseOptionsTask
from tierwise.fleet.fleet_databases import RecordingLocation, tasks_with_checksums
from tierwise.fleet.option_row_store import OptionRowStore
from tierwise.model import executor
from tierwise.model.errors import TierwiseError
from tierwise.predict import resolve_device

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("cryptography", "distributed", "pyarrow", "scipy")),
    reason="the extra cluster is not installed",
)


def test_a_profile_needs_no_file_elsewhere(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'like = "{NVME}"\n')
    profile = resolve_device(str(own)).profile
    text = pickle.dumps(profile)
    own.unlink()
    assert pickle.loads(text) == profile


def test_rows_on_disk_are_those_that_were_kept(tmp_path: Path) -> None:
    rows = database("a", option(10, 1 / 3, spread=1.7, verdict="reached"), warnings=["it was short"])
    where = [
        RecordingLocation("a", str(EXAMPLES / "order-entry")),
        RecordingLocation("b", str(EXAMPLES / "keyed-update")),
    ]
    (first, second) = tasks_with_checksums(
        [DatabaseOptionsTask(recording, (NVME,), PaymentTerms()) for recording in where]
    )
    with OptionRowStore.opened(tmp_path / "kept") as results:
        assert results.known([first, second]) == {}
        results.add(first, rows)
        results.flush()
        with pytest.raises(TierwiseError, match="another run"), OptionRowStore.opened(tmp_path / "kept"):
            pass
    with OptionRowStore.opened(tmp_path / "kept") as results:
        assert results.known([first, second]) == {0: rows}
        goal = DatabaseOptionsTask(
            first.recording, (NVME,), PaymentTerms(), Goal.parse("p99=5ms"), checksum=first.checksum
        )
        changed = DatabaseOptionsTask(first.recording, (NVME,), PaymentTerms(), checksum="other")
        assert results.known([goal, changed]) == {}
        assert (
            results.known(
                [DatabaseOptionsTask(first.recording, (GP3,), PaymentTerms(), checksum=first.checksum)]
            )
            == {}
        )
        assert results.known([first]) == {0: rows}
    (part,) = (tmp_path / "kept").glob("question=*/part-*.parquet")
    part.write_bytes(part.read_bytes()[:100])
    with (
        OptionRowStore.opened(tmp_path / "kept") as results,
        pytest.raises(TierwiseError, match="delete that file"),
    ):
        results.known([first])


def test_processors_are_those_of_affinity_and_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(executor, "_CGROUPS", tmp_path)
    monkeypatch.setattr(executor, "_OWN_GROUPS", tmp_path / "self")
    assert executor.usable_processors() == 16
    (tmp_path / "self").write_text("4:cpu,cpuacct:/docker/x\n0::/pod/task\n")
    (tmp_path / "pod/task").mkdir(parents=True)
    (tmp_path / "pod/task/cpu.max").write_text("max 100000\n")
    assert executor.usable_processors() == 16
    (tmp_path / "pod/cpu.max").write_text("350000 100000\n")
    assert executor.usable_processors() == 4
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert executor.usable_processors() == 1
    with executor.granted_processors(3):
        assert executor.usable_processors() == 3
    (tmp_path / "self").write_bytes(b"4:name=b\xe9:/p\xe9\x85d\n0::/pod/task\n")
    assert executor.usable_processors() == 4
