"""Power cuts under five engines that commit: what was acknowledged survives on an honest disk."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.disk_traces import traces
from support.paths import ROOT
from support.power_cuts import CLIENTS, cut_bed, small
from tierwise.lab import engines
from tierwise.results import PowerCut

NAME = f"cut-{os.getpid()}"
VOLATILE = "hdd-7k2-sata-2009"
LOAD_S = 0.6
MOST_CUTS = 50
PLANTED = ROOT / "benchmarks" / "skipped_fsync.py"
needs_xfs = pytest.mark.skipif(
    shutil.which("mkfs.xfs", path="/usr/sbin:/sbin") is None, reason="mkfs.xfs is missing"
)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def harmed(cuts: Sequence[PowerCut]) -> list[PowerCut]:
    return [cut for cut in cuts if cut.outcome != "whole"]


@pytest.mark.parametrize(
    ("engine", "settings", "fs"),
    [
        ("postgres", {}, ""),
        pytest.param("postgres", {}, "xfs", marks=needs_xfs),
        ("mariadb", {}, ""),
        ("sqlite", {}, ""),
        ("sqlite", {"journal_mode": "delete"}, ""),
        ("sqlite", {"journal_mode": "persist"}, ""),
        ("rocksdb", {}, ""),
        ("duckdb", {}, ""),
    ],
)
def test_no_acknowledged_commit_is_lost(
    open_path: Path, engine: str, settings: dict[str, str], fs: str
) -> None:
    durable = engines.create_engine(engine).durability()[0]
    made = engines.create_engine(engine, small(engine, **settings, **durable.settings))
    with cut_bed(made, NAME, VOLATILE, open_path / "mount", fs=fs) as bed:
        cuts = [bed.cut(seed, LOAD_S) for seed in range(3)]
    assert durable.durable and harmed(cuts) == []
    assert all(cut.commits > 0 and cut.check is not None for cut in cuts)
    assert traces(NAME, open_path / "mount") == []


def test_a_setting_that_does_not_flush_loses_recent_commits(open_path: Path) -> None:
    made = engines.create_engine("sqlite", small("sqlite", synchronous="off", wal_autocheckpoint="100000"))
    with cut_bed(made, NAME, "ssd-sata-dc", open_path / "mount") as bed:
        cut = bed.cut(1, LOAD_S)
    assert cut.outcome == "lost" and cut.lost >= cut.commits > 0 and cut.whole_load
    assert cut.oldest_lost_ms == pytest.approx(1e3 * cut.load_s)


def test_a_protected_cache_keeps_what_was_completed(open_path: Path) -> None:
    made = engines.create_engine("postgres", small("postgres"))
    with cut_bed(made, NAME, "ssd-sata-dc", open_path / "mount") as bed:
        cuts = [bed.cut(seed, LOAD_S) for seed in range(2)]
    assert harmed(cuts) == []


def test_a_disk_that_lies_about_flushes_is_found_out(open_path: Path) -> None:
    made = engines.create_engine("postgres", small("postgres"))
    with cut_bed(made, NAME, VOLATILE, open_path / "mount", lies=True) as bed:
        for seed in range(5):
            cut = bed.cut(seed, LOAD_S)
            if cut.outcome != "whole":
                break
    assert cut.outcome != "whole"
    assert traces(NAME, open_path / "mount") == []


@needs_compiler
def test_a_flush_skipped_for_one_file_in_a_hundred_is_found(open_path: Path) -> None:
    plant = runpy.run_path(str(PLANTED))
    made = engines.create_engine(plant["ENGINE"], small(plant["ENGINE"], **plant["SETTINGS"]))
    with plant["planted"](open_path, salt=1), cut_bed(made, NAME, "ssd-nvme-dc", open_path / "mount") as bed:
        for seed in range(MOST_CUTS):
            cut = bed.cut(seed, LOAD_S)
            if cut.outcome != "whole":
                break
    print(f"{CLIENTS} clients, cut {seed + 1}: {cut}")
    assert cut.outcome != "whole", f"not found in {MOST_CUTS} cuts"
