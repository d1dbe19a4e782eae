"""The recordings that ship answer without root: reproduced, predicted, advised on, small and described."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.paths import RECORDINGS
from tierwise.advise import AdviceOptions, advise
from tierwise.predict import Predictor, Scenario
from tierwise.recording import Recording
from tierwise.report.recording.decision_words import decision_headline

FOLDER = RECORDINGS
RECORDINGS = sorted(file.parent for file in FOLDER.glob("*/about.json"))
MOST_BYTES = 4 << 20


def test_one_of_them_is_of_a_size_that_is_no_toy() -> None:
    about = Recording.open(FOLDER / "pgbench-10gb").about
    assert (about.data_directory_bytes or 0) > 10 << 30
    assert Predictor.open(FOLDER / "pgbench-10gb", seeds=2).run.clients == 32
    assert sum(file.stat().st_size for path in RECORDINGS for file in path.iterdir()) < 10 << 20


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_an_example_is_whole_small_and_described(path: Path) -> None:
    Recording.open(path, whole=True)
    assert sum(file.stat().st_size for file in path.iterdir()) < MOST_BYTES
    assert f"**{path.name}**" in (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_an_example_predicts_and_advises(path: Path) -> None:
    predictor = Predictor.open(path, seeds=2)
    (answer,) = predictor.predict([Scenario(placement={"all": "nvme-dc"})])
    assert answer.refused is None
    assert answer.faster
    assert "ssd-nvme-dc" in decision_headline(advise(predictor, AdviceOptions(["nvme-dc"])))


@pytest.mark.parametrize("emulated", [False, True])
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_what_changes_nothing_gives_the_recorded_run(path: Path, emulated: bool) -> None:
    """Also where new devices would be real: files that stay are on their emulated disks still."""
    predictor = Predictor.open(path, seeds=2)
    (answer,) = predictor.predict([Scenario(cores=predictor.work.cores, emulated=emulated)])
    recorded = predictor.as_recorded.rate_per_s
    assert answer.rate_per_s and recorded
    assert answer.rate_per_s.value == pytest.approx(recorded.value, rel=0.01)


def test_an_interval_holds_both_ends_of_a_device_s_range(tmp_path: Path) -> None:
    """A drive whose flush takes 600 or 2,600 us, as a profile of each and as one with the range."""
    predictor = Predictor.open(FOLDER / "order-entry", seeds=2)
    ends = [drive(tmp_path / f"{number}.toml", number, (number, number)) for number in (600, 2600)]
    devices = [*ends, drive(tmp_path / "ranged.toml", 700, (600, 2600))]
    fast, slow, either = predictor.predict([Scenario(placement={"log": device}) for device in devices])
    assert fast.rate_per_s and slow.rate_per_s and either.rate_per_s and either.p50_us and slow.p50_us
    assert slow.rate_per_s.value < 0.8 * fast.rate_per_s.value
    assert either.rate_per_s.low < slow.rate_per_s.value < fast.rate_per_s.value < either.rate_per_s.high
    assert either.p50_us.high > slow.p50_us.value
    assert any("varies between drives and runs" in warning for warning in either.warnings)


def drive(file: Path, journal_us: int, ends: tuple[int, int]) -> str:
    """A consumer NVMe drive whose flush writes its journal in another time."""
    file.write_text(f"""
        like = "ssd-nvme-consumer"
        journal_us = {journal_us}
        [range]
        journal_us = {list(ends)}
        [source]
        journal_us = "made for a test"
        "range.journal_us" = "made for a test"
    """)
    return str(file)
