"""Faults planted in the models: each must be caught by the test that docs/evidence/models.md names for it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.paths import ROOT

COPY = ROOT / "target" / "planted"
"""Where the models are copied to; always the same, so that a second run builds little."""

SOURCES = Path("crates/device/src")


@dataclass(frozen=True)
class Fault:
    """One replacement in one source file, and the test that must see it."""

    name: str
    file: str
    right: str
    wrong: str
    target: str
    """File of ``tests/models``, or ``lib`` for a test beside the source."""
    test: str

    @property
    def where(self) -> str:
        """Option of cargo that chooses the target."""
        return "--lib" if self.target == "lib" else "--test=models"

    @property
    def full_test(self) -> str:
        """Name of the test in its target."""
        return self.test if self.target == "lib" else f"{self.target}::{self.test}"


FAULTS = [
    Fault(
        "tracks hold a tenth less than their zone says",
        "hdd/geometry.rs",
        "let turn = params.sectors_per_track;",
        "let turn = params.sectors_per_track * 9 / 10;",
        "hdd",
        "each_zone_has_its_own_media_rate",
    ),
    Fault(
        "the platters do not turn",
        "hdd/mechanics.rs",
        "self.turning_ns(ahead).saturating_sub(GAP_NS)",
        "self.turning_ns(ahead & 0).saturating_sub(GAP_NS)",
        "hdd",
        "a_log_writer_makes_one_append_a_revolution",
    ),
    Fault(
        "a seek is half as far",
        "hdd/mechanics.rs",
        "let distance = arm.cylinder.abs_diff(place.cylinder);",
        "let distance = arm.cylinder.abs_diff(place.cylinder) / 2;",
        "hdd",
        "random_writes_take_seek_half_a_turn_and_transfer",
    ),
    Fault(
        "a flush is free",
        "hdd/service.rs",
        "if !self.flushes.drains && self.writes.is_durable(last_write) {",
        "if last_write < u64::MAX {",
        "hdd",
        "a_write_cache_hides_the_revolution_until_the_flush",
    ),
    Fault(
        "cleaning costs nothing",
        "ssd/ftl/mod.rs",
        "self.moved += u64::from(valid);",
        "self.moved += u64::from(valid) / 2;",
        "ssd_amplification",
        "computed_and_replayed_steady_states_meet_the_closed_form",
    ),
    Fault(
        "cleaning loses a unit",
        "ssd/ftl/mod.rs",
        "self.place(unit - 1);",
        "self.place((unit - 1).max(1));",
        "lib",
        "ssd::ftl::tests::map_and_blocks_agree",
    ),
    Fault(
        "an erase takes no time",
        "ssd/ftl/mod.rs",
        'erase_ns: table.micros("erase_us", TIME_NS)?,',
        'erase_ns: 0 * table.micros("erase_us", TIME_NS)?,',
        "ssd_timing",
        "some_reads_meet_an_erase",
    ),
    Fault(
        "a discard leaves the data valid",
        "ssd/ftl/mod.rs",
        "self.slots.set(unit as usize, NOTHING);\n        }\n    }\n\n    /// Units moved for",
        "let _ = unit;\n        }\n    }\n\n    /// Units moved for",
        "ssd_amplification",
        "discarded_space_is_spare_space",
    ),
    Fault(
        "parity is written without reading the old",
        "array/disk_array.rs",
        "if self.extents.is_empty() {\n            self.finish_row",
        "if row < u64::MAX {\n            self.finish_row",
        "array_physics",
        "a_small_write_with_parity_takes_one_more_turn_than_a_read",
    ),
    Fault(
        "a controller's cache never fills",
        "array/controller_cache.rs",
        "self.sectors + sectors <= self.room\n",
        "self.sectors + sectors < u64::MAX\n",
        "array_physics",
        "writes_are_fast_until_the_share_is_dirty_and_then_as_slow_as_the_members",
    ),
    Fault(
        "a volume has no limit of I/Os",
        "volume/mod.rs",
        "self.io.take(at, count);",
        "self.io.take(at, count - count);",
        "volume",
        "ios_above_the_limit_wait_for_their_second",
    ),
    Fault(
        "credits are never spent",
        "volume/mod.rs",
        "credits.take(at, sectors);",
        "credits.take(at, sectors - sectors);",
        "sheets",
        "credits_end_at_the_computed_second_and_come_back_while_idle",
    ),
    Fault(
        "a link has no limit",
        "ram.rs",
        "let start = from.max(self.link_free);",
        "let start = from;",
        "ssd_timing",
        "latencies_overlap_and_the_link_is_shared_in_order_of_arrival",
    ),
]


@pytest.fixture(scope="module")
def copy() -> Path:
    """The models' crate with the profiles its tests read, in a workspace of its own."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    shutil.rmtree(COPY, ignore_errors=True)
    # With the time of now: what an earlier run has built holds that run's last fault.
    shutil.copytree(ROOT / "crates" / "device", COPY / "crates" / "device", copy_function=shutil.copyfile)
    profiles = Path("python", "tierwise", "data", "devices")
    shutil.copytree(ROOT / profiles, COPY / profiles)
    shutil.copy(ROOT / "Cargo.lock", COPY)
    workspace = (ROOT / "Cargo.toml").read_text("utf-8")
    members, rest = workspace.split("\n", 3)[2:]
    assert members.startswith("members = ")
    (COPY / "Cargo.toml").write_text(f'[workspace]\nresolver = "2"\nmembers = ["crates/device"]\n{rest}')
    return COPY


def cargo_test(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Tests of the copy, built with the dependencies that the real tests were built with."""
    command = ("cargo", "test", "--offline", "--quiet", "--target-dir", str(ROOT / "target"))
    return subprocess.run(
        [*command, "-p", "tierwise-device", *arguments], cwd=copy, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def sound(copy: Path) -> set[str]:
    """Names of the tests, which pass without a fault."""
    names = set[str]()
    for where in ("--lib", "--test=models"):
        chosen = {fault.name for fault in FAULTS if fault.where == where}
        tests = {fault.full_test for fault in FAULTS if fault.where == where}
        done = cargo_test(copy, where, "--", "--exact", *tests)
        assert f"{len(tests)} passed" in done.stdout, done.stdout + done.stderr
        names |= chosen
    return names


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(copy: Path, sound: set[str], fault: Fault) -> None:
    assert fault.name in sound
    source = copy / SOURCES / fault.file
    right = source.read_text("utf-8")
    assert right.count(fault.right) == 1, f"{fault.file} no longer has, exactly once: {fault.right}"
    try:
        source.write_text(right.replace(fault.right, fault.wrong), "utf-8")
        faulty = cargo_test(copy, fault.where, "--", "--exact", fault.full_test)
    finally:
        source.write_text(right, "utf-8")
    assert "test result: FAILED. 0 passed; 1 failed" in faulty.stdout, faulty.stdout + faulty.stderr


def test_the_page_lists_every_fault_and_its_test() -> None:
    page = (ROOT / "docs" / "evidence" / "models.md").read_text("utf-8")
    rows = [f"| {fault.name} | `{fault.file}` | `{fault.target}`: `{fault.test}` |" for fault in FAULTS]
    assert not [row for row in rows if row not in page]
