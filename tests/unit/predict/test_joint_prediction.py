"""Several recordings answered together: what sharing a device costs, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.paths import RECORDINGS
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor, Scenario, predict_together
from tierwise.predict.joint_prediction import shared_devices

EXAMPLES = RECORDINGS


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same recording under three names."""
    folder = tmp_path_factory.mktemp("shops")
    names = ("north", "south", "east")
    return {name: Path(shutil.copytree(EXAMPLES / "order-entry", folder / name)) for name in names}


@pytest.fixture(scope="module")
def predictors(shops: dict[str, Path]) -> dict[str, Predictor]:
    return {name: Predictor.open(path, seeds=2) for name, path in shops.items()}


def kept(predictors: dict[str, Predictor], device: str) -> list[float]:
    scenarios = {name: Scenario(placement={"log": device}) for name in predictors}
    return [answer.kept.value for answer in predict_together(predictors, scenarios, seeds=2)]


def test_more_databases_on_one_disk_each_keep_less(predictors: dict[str, Predictor]) -> None:
    two = kept({name: predictors[name] for name in ("north", "south")}, "hdd-7k2#1")
    three = kept(predictors, "hdd-7k2#1")
    assert max(two) < 0.9
    assert sum(three) / 3 < sum(two) / 2


def test_a_fast_device_that_is_hardly_busy_is_enough_for_all(predictors: dict[str, Predictor]) -> None:
    assert min(kept(predictors, "nvme-dc#1")) > 0.9


def test_who_shares_nothing_is_not_disturbed(predictors: dict[str, Predictor]) -> None:
    disk, own = Scenario(placement={"log": "hdd-7k2#1"}), Scenario(placement={"log": "hdd-7k2"})
    scenarios = {"north": disk, "south": disk, "east": own}
    assert shared_devices(predictors, scenarios) == {"hdd-7k2": ["north", "south"]}
    answers = predict_together(predictors, scenarios, seeds=2)
    assert answers[2].kept.value == 1.0
    assert answers[2].together.rate_per_s == answers[2].alone.rate_per_s


def test_the_answer_is_a_row_for_each_database(shops: dict[str, Path]) -> None:
    place = "north.log=hdd-7k2#1,south.log=hdd-7k2#1"
    asked = ["predict", str(shops["north"]), str(shops["south"]), "--place", place, "--seeds", "2"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "Sharing costs" in result.stdout
    content = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).stdout)
    assert [prediction["database"] for prediction in content["predictions"]] == ["north", "south"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "without --place"),
        (["--place", "log=nvme-dc#1"], "names no database"),
        (["--place", "west.log=nvme-dc#1"], "no recording is named 'west'"),
        (["--place", "north.log=nvme-dc,south.log=nvme-dc"], "no two databases share"),
        (["--place", "north.logs=nvme-dc#1"], "unknown role"),
        (["--place", "north.log=nvme-dc#x"], "is not a number"),
        (["--devices", "nvme-dc"], "--devices is for one recording"),
        (["--memory", "8G", "--place", "north.log=nvme-dc#1"], "--memory is for one recording"),
        (["--growth", "2", "--place", "north.log=nvme-dc#1"], "--growth is for one recording"),
    ],
)
def test_what_cannot_be_asked_is_refused(shops: dict[str, Path], arguments: list[str], expected: str) -> None:
    result = CliRunner().invoke(app, ["predict", str(shops["north"]), str(shops["south"]), *arguments])
    assert isinstance(result.exception, TierwiseError)
    assert expected in str(result.exception)


def test_two_recordings_of_one_name_and_work_done_once_are_refused(shops: dict[str, Path]) -> None:
    twice = [str(shops["north"])] * 2
    result = CliRunner().invoke(app, ["predict", *twice, "--place", "north.log=nvme-dc#1"])
    assert "have one name, 'north'" in str(result.exception)
    once = str(EXAMPLES / "keyed-update")
    place = "north.log=nvme-dc#1,keyed-update.log=nvme-dc#1"
    result = CliRunner().invoke(app, ["predict", str(shops["north"]), once, "--place", place, "--seeds", "2"])
    assert "keyed-update: work that is done once" in str(result.exception)


def test_each_recording_is_judged(shops: dict[str, Path], tmp_path: Path) -> None:
    lost = Path(shutil.copytree(shops["north"], tmp_path / "lost"))
    about = json.loads((lost / "about.json").read_text())
    about["losses"] = {"recorded_events": 900, "lost_events": 100}
    (lost / "about.json").write_text(json.dumps(about))
    place = "lost.log=hdd-7k2#1,south.log=hdd-7k2#1"
    asked = ["predict", str(lost), str(shops["south"]), "--place", place, "--seeds", "2"]
    text = CliRunner().invoke(app, asked).stdout
    assert text.startswith("lost is not usable: do not act on what follows.")
    assert "Warning, lost: the kernel dropped 100 of 1000 events" in text, "with its database"
    assert "south: This recording is usable." in text
    content = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).stdout)
    assert [(each["database"], each["usable"]) for each in content["usability"]] == [
        ("lost", False),
        ("south", True),
    ]


def test_databases_are_answered_together_with_another_placement_alone(
    predictors: dict[str, Predictor],
) -> None:
    log = Scenario(placement={"log": "hdd-7k2#1"})
    scenarios = {"north": log, "south": log.changed(growth=2.0, cores=4), "east": log}
    with pytest.raises(TierwiseError, match=r"south: .* not with another cores and growth"):
        predict_together(predictors, scenarios, seeds=2)
