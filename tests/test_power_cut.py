"""Power cuts under a PostgreSQL that commits: what was acknowledged survives, unless the disk lied."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from power_cuts import CLIENTS, Cut, cluster
from test_disk import traces

from tierwise.device_models import profiles
from tierwise.host.disk.config import WRITE_BACK_S

pytestmark = pytest.mark.privileged

NAME = f"cut-{os.getpid()}"
VOLATILE = "hdd-7k2-sata-2009"
needs_xfs = pytest.mark.skipif(
    shutil.which("mkfs.xfs", path="/usr/sbin:/sbin") is None, reason="mkfs.xfs is missing"
)


def describe(cuts: list[Cut]) -> str:
    """One line for people; shown by ``pytest -rP`` and when a test fails."""
    kept = sum(cut.report.kept_sectors for cut in cuts)
    sectors = sum(cut.report.unflushed_sectors for cut in cuts)
    return (
        f"{len(cuts)} cuts, {sum(cut.commits for cut in cuts)} commits acknowledged, "
        f"{sum(cut.lost for cut in cuts)} lost in {sum(cut.lost > 0 for cut in cuts)} cuts, "
        f"{sum(cut.damage is not None for cut in cuts)} cuts damaged the database; "
        f"{kept} of {sectors} unflushed sectors kept, {sum(cut.report.torn_writes for cut in cuts)} torn "
        f"writes, {sum(cut.report.failed_requests for cut in cuts)} requests inside"
    )


def at_risk(cuts: list[Cut]) -> int:
    return sum(cut.report.unflushed_sectors > 0 for cut in cuts)


@pytest.mark.parametrize(
    ("fs", "seeds"), [("ext4", range(24)), pytest.param("xfs", range(100, 106), marks=needs_xfs)]
)
def test_no_acknowledged_commit_is_lost(open_path: Path, fs: str, seeds: range) -> None:
    cuts: list[Cut] = []
    with cluster(NAME, profiles.load(VOLATILE), open_path / "mount", fs) as running:
        # On a busy machine less of the time has writes at risk, so that more cuts are needed.
        for seed in range(seeds.start, seeds.start + 3 * len(seeds)):
            if len(cuts) >= len(seeds) and at_risk(cuts) > len(seeds) / 2:
                break
            cuts.append(running.survive(seed))
            assert cuts[-1].damage is None, f"seed {seed}: {cuts[-1]}"
            assert cuts[-1].lost == 0, f"seed {seed}: {cuts[-1]}"
    print(fs, describe(cuts))
    # The cuts must have come while it mattered: enough of them with writes at risk, some of which were kept.
    assert at_risk(cuts) > len(seeds) / 2, describe(cuts)
    assert sum(cut.report.kept_sectors for cut in cuts) > 0, describe(cuts)
    assert all(cut.commits > 0 for cut in cuts), describe(cuts)
    assert traces(NAME, open_path / "mount") == []


def test_a_protected_cache_keeps_what_was_completed(open_path: Path) -> None:
    with cluster(NAME, profiles.load("ssd-sata-dc"), open_path / "mount") as running:
        cuts = [running.survive(seed) for seed in range(3)]
    print(describe(cuts))
    assert [(cut.lost, cut.damage) for cut in cuts] == [(0, None)] * len(cuts)
    for cut in cuts:
        # Only what was inside, or just on its way in or out, is at risk.
        assert cut.report.unflushed_writes <= cut.report.failed_requests + CLIENTS


@pytest.mark.parametrize("keep_random", [False, True])
def test_a_disk_that_lies_about_flushes_is_found_out(open_path: Path, keep_random: bool) -> None:
    cuts = []
    with cluster(NAME, profiles.load(VOLATILE), open_path / "mount", lies=True) as running:
        for seed in range(5):
            # What was done before is on the medium by then; only the load is at risk.
            time.sleep(WRITE_BACK_S)
            cuts.append(running.survive(seed, keep_random))
            if cuts[-1].damage is not None:
                break
    print("kept at random:" if keep_random else "all lost:", describe(cuts), cuts[-1].damage or "")
    assert any(cut.lost or cut.damage for cut in cuts), describe(cuts)
    assert traces(NAME, open_path / "mount") == []
