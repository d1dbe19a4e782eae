"""The Python API: what a notebook types."""

from __future__ import annotations

from pathlib import Path

import pytest

import tierwise as tw
from support.paths import ROOT

RECORDING = ROOT / "examples" / "recordings" / "keyed-update"


@pytest.fixture(scope="module")
def recording() -> tw.api.recordings.RecordedRun:
    return tw.open_recording(RECORDING)


def test_a_prediction_has_an_interval_and_its_scenario(recording: tw.api.recordings.RecordedRun) -> None:
    answer = recording.predict({"data": "nvme-dc"}, cores=8)
    assert answer.speedup is not None
    low, high = answer.speedup.interval
    assert low < answer.speedup.value < high
    assert answer.scenario.cores == 8 and recording.predict("data=nvme-dc", cores=8) == answer


def test_several_answers_are_a_table_everywhere(recording: tw.api.recordings.RecordedRun) -> None:
    many = recording.predict_many([{"all": name} for name in ("gp3", "nvme-dc")])
    frame = many.to_pandas()
    assert list(frame["all"]) == ["gp3", "nvme-dc"]
    assert list(frame["speedup"]) == [answer.speedup and answer.speedup.value for answer in many]
    assert len(many) == 2 and "<table" in many._repr_html_() and "| " in str(many)
    assert many.plot() is not None


def test_advice_is_written_as_a_page(recording: tw.api.recordings.RecordedRun, tmp_path: Path) -> None:
    advice = recording.advise(["nvme-dc"], budget="50/month")
    advice.to_html(tmp_path / "advice.html")
    page = (tmp_path / "advice.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") and "nvme-dc" in page and "default-src" in page
    assert (advice.data.budget_per_month, advice.data.currency) == (50, "USD")
    unnamed = recording.advise(["nvme-dc"], tables=True)
    assert unnamed.data.tables is None, "the recording has no names of tables"


def test_tables_are_relations(recording: tw.api.recordings.RecordedRun) -> None:
    requests = recording.tables["requests"]
    assert len(requests) > 0 and len(requests.to_pandas()) == len(requests)
    assert requests.filter("op = 'write'").fetchall() and "<table" in requests._repr_html_()


def test_errors_have_one_base_and_a_fix(recording: tw.api.recordings.RecordedRun) -> None:
    with pytest.raises(tw.TierwiseError) as raised:
        recording.predict({"data": "nvem-dc"})
    assert "nvme-dc" in raised.value.fix


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"memory": 8}, "memory: 8 is 8 bytes"),
        ({"memory": "8"}, "memory: 8 is 8 bytes"),
        ({"core": 8}, "core: Extra inputs"),
        ({"rate_per_s": -1.0}, "rate_per_s: Input should be greater than 0"),
    ],
)
def test_a_wrong_field_is_named(
    recording: tw.api.recordings.RecordedRun, fields: dict[str, object], message: str
) -> None:
    with pytest.raises(tw.TierwiseError, match=message):
        recording.predict({}, **fields)


def test_devices_may_be_one_text_as_on_the_command_line(recording: tw.api.recordings.RecordedRun) -> None:
    assert recording.rank("nvme-dc,gp3").data.devices == ["ssd-nvme-dc", "volume-aws-gp3"]
    advice = recording.advise("gp3", have="nvme-dc").data
    assert (advice.devices, advice.have) == (["volume-aws-gp3", "ssd-nvme-dc"], ["ssd-nvme-dc"])


def test_devices_and_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.device_models.profiles.names", lambda: ["hdd-7k2", "ssd-nvme-dc"])
    devices = tw.devices()
    assert "ssd-nvme-dc" in list(devices.to_pandas()["device"])
    assert tw.device("nvme-dc").simulate("randread-4k-qd32", count=2_000).iops > 100_000
    study = tw.load_study("redo-placement").override(clients=32, placements=["log-ssd"])
    assert study.study.clients == 32 and list(study.study.placements) == ["all-hdd", "log-ssd"]
