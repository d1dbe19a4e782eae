"""The recordings that ship answer without root: reproduced, predicted, advised on, small and described."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.paths import RECORDINGS
from tierwise.advise import advise
from tierwise.predict import Predictor, Scenario
from tierwise.recording import Recording
from tierwise.report.recording.advice_words import first_sentence

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
    assert "ssd-nvme-dc" in first_sentence(advise(predictor, ["nvme-dc"]))


@pytest.mark.parametrize("emulated", [False, True])
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_what_changes_nothing_gives_the_recorded_run(path: Path, emulated: bool) -> None:
    """Also where new devices would be real: files that stay are on their emulated disks still."""
    predictor = Predictor.open(path, seeds=2)
    (answer,) = predictor.predict([Scenario(cores=predictor.work.cores, emulated=emulated)])
    recorded = predictor.as_recorded.rate_per_s
    assert answer.rate_per_s and recorded
    assert answer.rate_per_s.value == pytest.approx(recorded.value, rel=0.01)
