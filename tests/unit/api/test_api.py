"""The Python API: what a notebook types."""

from __future__ import annotations

from collections.abc import Callable
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


def test_answers_of_an_unusable_recording_begin_with_that() -> None:
    unusable = tw.open_recording(ROOT / "examples" / "recordings" / "pgbench-10gb")
    assert not unusable.usability.usable
    for answers in (unusable.predict_many(["log=nvme-dc"]), unusable.rank("nvme-dc")):
        assert str(answers).startswith("**This recording is not usable")
        assert all(sentence in str(answers) for sentence in unusable.usability.sentences)


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
        ({"memory_bytes": 1}, "memory_bytes: 1 byte is less than any machine has"),
        ({"buffer_bytes": 8}, "buffer_bytes: 8 bytes is less"),
        ({"recorded_on": "nvme-dc"}, "^recorded_on: only the limits of a machine need it: add instance"),
        ({"emulated": True}, "^emulated: nothing is placed on a disk: add place"),
        ({"recorded_volumes": ["log"]}, "recorded_volumes: it follows from recorded_on"),
        ({"growth": 2, "set_by_growth": ["memory_bytes"]}, "set_by_growth: it follows from growth"),
        ({"memory": "8G", "memory_bytes": 2**33}, "memory and memory_bytes are both given"),
        ({"instance": "m6i"}, "^instance: 'm6i' is not known"),
        ({"core": 8}, "core: no such field; did you mean cores?"),
        ({"rate_per_s": -1.0}, "rate_per_s: Input should be greater than 0"),
        ({"cores": True}, "cores: True is no number"),
        ({"placement": {"log": "gp3"}}, "the placement is the first argument"),
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


def test_numbers_stand_for_texts_where_they_are_clear(recording: tw.api.recordings.RecordedRun) -> None:
    advice = recording.advise(["nvme-dc"], 50, years="3", may_lose=1, have=None, instance=None).data
    assert advice.budget_per_month == 50
    asked = recording.predict({"log": "nvme-dc"}, settings="synchronous_commit=off", memory=None).scenario
    assert asked.settings == ["synchronous_commit=off"] and asked.memory_bytes is None


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"headroom": 0.3}, "^headroom: '0.3' is no percentage"),
        ({"growth": 0.5}, "0.5 is not from 1 to 100"),
        ({"goal": 2000}, "^goal: '2000' is no goal"),
        ({"goal": {"p99": 5}}, "is no text"),
        ({"budget": float("nan")}, "'nan' is no amount"),
        ({"years": None}, "years: None is no number"),
        ({"instance": 5}, "instance: 5 is no name"),
        ({"prices": 5}, "prices: 5 is no path"),
        ({"rebuildable": "no"}, "'no' is neither True nor False"),
        ({"devices": [5]}, "devices: 5 is no name"),
    ],
)
def test_a_wrong_term_is_named(
    recording: tw.api.recordings.RecordedRun, terms: dict[str, object], message: str
) -> None:
    with pytest.raises(tw.TierwiseError, match=message):
        recording.advise(**{"devices": ["nvme-dc"], **terms})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda run: run.predict(5), "5 is no placement"),
        (lambda run: run.predict_many("log=nvme-dc"), "is no list of placements"),
        (lambda run: run.rank("nvme-dc", settings="synchronous=normal"), "ranked with the recorded settings"),
        (lambda run: run.rank("nvme-dc", growth=2.0), "^growth: placements are ranked"),
        (lambda run: run.rank("nvme-dc", rate_per_s=5), "^rate_per_s: placements are ranked"),
        (lambda _: tw.open_recording(RECORDING, fresh="no"), "'no' is neither True nor False"),  # type: ignore[arg-type]
        (lambda _: tw.open_recording(5), "path: 5 is no path"),  # type: ignore[arg-type]
        (lambda run: run.predict("log"), "^place: 'log' is not ROLE=DEVICE"),
        (lambda run: run.advise(), "name one or more with devices"),
        (lambda _: tw.open_recording("a" * 5000), "too long"),
        (lambda _: tw.record(RECORDING, engine="postgres").__enter__(), "is not empty"),
        (lambda _: tw.open_recording(""), "path: '' is no path"),
        (lambda _: tw.record("out").__enter__(), "neither engine nor pid"),
        (lambda _: tw.record("out", engine="postgres", pid=1).__enter__(), "both given"),
        (lambda _: tw.device("nvme-dc").simulate("randread-4k", counts=1), "counts is no field of a job"),
        (lambda _: tw.device("nvme-dc").simulate("randread-4k", count="x"), "a field of the job"),
        (lambda _: tw.load_study("crud").override(client=1), "client is no option of a study"),
        (lambda _: tw.load_study("crud").override(place="log=gp3"), "is no list"),
        (lambda _: tw.load_study("crud").override(place=5), "place: 5 is no list"),
        (lambda _: tw.load_study("crud").override(place=["log"]), "^place: 'log' is not ROLE=DEVICE"),
        (lambda _: tw.load_study("crud").override(set=["x"]), "^set: 'x' is not KEY=VALUE"),
        (lambda _: tw.load_study("crud").override(devices=["x"]), "^devices: 'x' is not NAME=DIRECTORY"),
        (lambda _: tw.load_study("crud").override(quick="no"), "'no' is neither True nor False"),
        (lambda _: tw.load_study("crud").run(5), "output: 5 is no path"),  # type: ignore[arg-type]
        (lambda _: tw.load_study("crud").run("out", seed="x"), "seed: 'x' is no whole number"),  # type: ignore[arg-type]
        (lambda _: tw.device("nvme-dc").simulate("randread-4k", times=5), "a field of the job"),
    ],
)
def test_what_no_call_can_mean_is_an_error_with_its_fix(
    recording: tw.api.recordings.RecordedRun,
    asked: Callable[[tw.api.recordings.RecordedRun], object],
    message: str,
) -> None:
    with pytest.raises(tw.TierwiseError, match=message) as raised:
        asked(recording)
    assert raised.value.fix


def test_devices_and_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.device_models.profiles.profile_names", lambda: ["hdd-7k2", "ssd-nvme-dc"])
    devices = tw.devices()
    assert "ssd-nvme-dc" in list(devices.to_pandas()["device"])
    assert tw.device("nvme-dc").simulate("randread-4k-qd32", count=2_000).iops > 100_000
    study = tw.load_study("redo-placement").override(clients=32, placements=["log-ssd"])
    assert study.study.clients == 32 and list(study.study.placements) == ["all-hdd", "log-ssd"]
