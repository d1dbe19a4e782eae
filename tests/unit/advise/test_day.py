"""A day of recordings: its timeline, the loads that stand for it, its advice, and its limits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

import tierwise as tw
from support.paths import RECORDINGS
from support.schemas import problems
from tierwise.advise import Advice, AdviceForLoad, AdviceOptions, advise, advise_day
from tierwise.capture.schedule import BurstCost, BurstSchedule, DayPlan, FinishedRecording
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor
from tierwise.predict.timeline import timeline_of
from tierwise.recording import Day
from tierwise.report.recording.day_report import day_sentence, loads_agreement_sentence

EXAMPLES = RECORDINGS


def copied(folder: Path, source: str, name: str, started_at: str) -> Path:
    """A recording of a day: an example under another name, at another time."""
    shutil.copytree(EXAMPLES / source, folder / name)
    about = folder / name / "about.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"started_at": started_at}))
    return folder / name


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """Three hours: order entry at 9 and 10 o'clock; small objects, which are slower, once at 10 and at 11."""
    folder = tmp_path / "day"
    copied(folder, "order-entry", "d", "2026-11-23T09:00:00Z")
    copied(folder, "order-entry", "c", "2026-11-23T10:00:00Z")
    copied(folder, "order-entry", "e", "2026-11-23T10:10:00Z")
    copied(folder, "small-objects", "b", "2026-11-23T10:30:00Z")
    copied(folder, "small-objects", "a", "2026-11-23T11:10:00Z")
    return folder


def taken(
    rate_ratio: float | None = None, size_mb: float = 1.0, recorded_s: float = 6.0
) -> FinishedRecording:
    return FinishedRecording(round(1e6 * size_mb), recorded_s, rate_ratio, cpu_ratio=1.0204, cpu_s=0.5)


def test_a_day_is_ordered_by_time_and_stands_for_its_loads(day: Path) -> None:
    timeline = timeline_of(Day.open(day))
    assert [moment.recording for moment in timeline.moments] == ["d", "c", "e", "b", "a"]
    assert timeline.chosen == {"peak": "d", "mean": "d", "worst-p99": "a"}
    first = timeline.moment("d")
    assert first.rate_per_s == pytest.approx(131.8, abs=0.1)
    assert first.log_wait_share == pytest.approx(0.902, abs=0.001)
    assert first.busy[tw.Role.LOG] == pytest.approx(0.883, abs=0.001)


def test_what_cannot_be_read_is_left_out_and_said(day: Path) -> None:
    (day / "killed").mkdir()
    (day / "c" / "about.json").write_text("{}")
    (day / "b" / "states.parquet").write_bytes(b"")
    copied(day, "order-entry", "f", "tomorrow")
    timeline = timeline_of(Day.open(day))
    assert [moment.recording for moment in timeline.moments] == ["d", "e", "b", "a"]
    assert "c/about.json" in timeline.warnings[0]
    assert "f/about.json: started_at: 'tomorrow' is no time" in timeline.warnings[1]
    assert timeline.moment("b").rate_per_s is None
    assert "states.parquet" in timeline.moment("b").without


def test_recordings_of_other_machines_and_settings_are_a_warning(day: Path) -> None:
    """The rates of two machines were averaged without a word."""
    before = timeline_of(Day.open(day)).warnings
    about = day / "c" / "about.json"
    fields = json.loads(about.read_text())
    fields["machine"] |= {"cores": 64, "memory_bytes": 1 << 40}
    fields["settings"] |= dict.fromkeys(fields["settings"], "other")
    about.write_text(json.dumps(fields))
    warnings = [text for text in timeline_of(Day.open(day)).warnings if text not in before]
    assert [text.partition(":")[0] for text in warnings] == [
        "the recordings are of several numbers of cores",
        "the recordings are of several sizes of memory",
        "the recordings differ in settings",
    ]
    (day / "b" / "states.parquet").write_bytes(b"")
    assert day_sentence(timeline_of(Day.open(day))).startswith("5 recordings, 1 of them without a rate: ")


def test_a_folder_without_recordings_is_no_day(tmp_path: Path) -> None:
    assert not Day.is_at(tmp_path)
    assert not Day.is_at(EXAMPLES / "order-entry")
    with pytest.raises(TierwiseError, match="holds no recording"):
        Day.open(tmp_path)


def test_profile_shows_the_timeline(day: Path, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    page = tmp_path / "day.html"
    shown = CliRunner().invoke(app, ["profile", str(day), "--html", str(page)], env={"COLUMNS": "160"})
    assert shown.exit_code == 0
    assert shown.stdout == snapshot
    assert page.read_text().count("<svg") == 6  # three charts, wide and narrow
    printed = CliRunner().invoke(app, ["profile", str(day), "--format", "json"]).stdout
    assert not problems("day", json.loads(printed))


def test_advice_is_given_for_each_load_and_can_be_verified(day: Path, tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    asked = ["advise", str(day), "--devices", "nvme-dc", "--seeds", "2", "--format", "json", "-o", str(page)]
    printed = CliRunner().invoke(app, asked).stdout
    content = json.loads(printed)
    assert "advice for d " in page.read_text(), "the page is of the peak"
    assert page.read_text().count("<svg") == 6, "the timeline of the day is on it"
    assert not problems("day-advice", content)
    answers = content["day_advice"]["answers"]
    assert [(answer["load"], answer["recording"]) for answer in answers] == [
        ("peak", "d"),
        ("mean", "d"),
        ("worst-p99", "a"),
    ]
    assert content["day_advice"]["same_first_move"]
    assert answers[0]["advice"]["ladder"][0]["role"] == "log"
    (tmp_path / "advice.json").write_text(printed)
    verified = tw.verify(tmp_path / "advice.json", day / "d").data
    assert verified.forecast.label == "the best placement at mean rate"
    assert [(difference.kind, difference.role) for difference in verified.differences] == [
        ("placement", tw.Role.LOG)
    ]


@pytest.fixture(scope="module")
def run() -> Advice:
    return advise(Predictor.open(EXAMPLES / "order-entry", seeds=2), AdviceOptions(["nvme-dc"]))


def staying(run: Advice) -> Advice:
    """The same advice, but to move nothing."""
    option = run.decision.option.model_copy(update={"placement": {}})
    return run.model_copy(update={"decision": run.decision.model_copy(update={"option": option})})


def test_the_first_step_of_a_day_is_that_of_its_advice(day: Path, run: Advice) -> None:
    """The ladder lists moves also where the advice is to stay, or to set something."""
    timeline = timeline_of(Day.open(day))
    assert run.ladder
    assert ": first move nothing." in loads_agreement_sentence(advise_day(timeline, lambda _: staying(run)))
    together = run.model_copy(update={"ladder": []})
    moved = loads_agreement_sentence(advise_day(timeline, lambda _: together))
    assert ": first move " in moved and "nothing" not in moved
    setting = run.settings[0].setting
    instead = run.model_copy(update={"decision": run.decision.model_copy(update={"setting": setting})})
    said = loads_agreement_sentence(advise_day(timeline, lambda _: instead))
    assert said == f"The advice is the same at peak rate, mean rate and worst p99 hour: set {setting}."


def test_a_recording_that_cannot_be_read_is_not_in_the_mean(day: Path) -> None:
    known = timeline_of(Day.open(day))
    copied(day, "order-entry", "f", "2026-11-23T12:00:00Z")
    (day / "f" / "calls.parquet").write_bytes(b"")
    broken = timeline_of(Day.open(day))
    assert broken.moment("f").without and broken.mean_rate_per_s == known.mean_rate_per_s


def test_disagreement_is_said(day: Path, run: Advice) -> None:
    asked: list[str] = []

    def ask(name: str) -> Any:
        asked.append(name)
        return run if name == "d" else staying(run)

    advised = advise_day(timeline_of(Day.open(day)), ask)
    assert asked == ["d", "a"]
    assert not advised.same_first_move
    assert loads_agreement_sentence(advised) == (
        "The advice depends on the load: at peak rate, move the log to ssd-nvme-dc; "
        "at mean rate, move the log to ssd-nvme-dc; at worst p99 hour, move nothing."
    )


def test_a_load_without_advice_is_said(day: Path, run: Advice) -> None:

    def ask(name: str) -> Any:
        if name == "a":
            raise TierwiseError("planted", "fix")
        return run

    advised = advise_day(timeline_of(Day.open(day)), ask)
    assert advised.same_first_move
    assert [answer for answer in advised.answers if answer.refused] == [
        AdviceForLoad(load="worst-p99", recording="a", advice=None, refused="planted")
    ]


def test_python_opens_a_day(day: Path) -> None:
    recordings = tw.open_recording(day)
    assert len(recordings) == 5
    assert [recording.info.started_at[11:16] for recording in recordings] == [
        "09:00",
        "10:00",
        "10:10",
        "10:30",
        "11:10",
    ]
    assert "5 recordings" in str(recordings.timeline())


def test_python_advises_a_day_on_the_terms_of_a_run(day: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[AdviceOptions] = []

    def refused(_: Predictor, options: AdviceOptions, *, tables: bool) -> None:
        asked.append(options)
        raise TierwiseError(f"planted {tables}", "wait")

    monkeypatch.setattr("tierwise.api.recordings.advise", refused)
    terms = {"have": ["nvme-dc"], "growth": "50%", "may_lose": "1s", "grow": "3x", "tables": True}
    recordings = tw.open_recording(day)
    for opened in (recordings, recordings[0]):
        with pytest.raises(TierwiseError, match="planted True"):
            opened.advise(**terms)
    assert len(asked) > 1 and all(options == asked[-1] for options in asked)
    assert asked[0].terms.have and asked[0].may_lose_s == 1


@pytest.mark.parametrize(
    ("recordings", "period_s"),
    [
        ([taken(0.9)] * 2, 3600 / 63),  # 0.6 s each: of 39 s, 1.2 s are spent
        ([taken(1.1)] * 2, 3600 / 498),  # noise gives no time back; 498 more MB fit
        ([taken(None)], 3600 / 324),  # 2 % of the processors is all that is known: 0.12 s each
        ([taken(0.5)] * 14, inf),  # 42 s are spent
        ([taken(1.0, size_mb=100)] * 2, 1200),  # three more fit
        ([taken(1.0, size_mb=300)], inf),
    ],
)
def test_recordings_are_as_far_apart_as_the_limits_ask(
    recordings: Sequence[FinishedRecording], period_s: float
) -> None:
    plan = DayPlan(3900, 60, BurstSchedule(10, 0.1))
    assert plan.shortest_period(recordings, elapsed_s=300)[0] == pytest.approx(period_s)


def test_the_cost_has_an_interval_from_two_recordings_on() -> None:
    assert BurstCost.of([taken(0.9)]).low is None
    cost = BurstCost.of([taken(0.88), taken(0.92), taken(0.90)])
    assert cost.low is not None and cost.high is not None
    assert cost.low < cost.share < cost.high
    assert cost.share == pytest.approx(0.1, abs=0.001)


def test_a_recording_that_breaks_the_limit_is_known() -> None:
    plan = DayPlan(3600, 60, BurstSchedule(10, 0.1), most_bytes=10_000_000)
    assert not plan.is_exceeded_by([taken(size_mb=5)] * 2)
    assert plan.is_exceeded_by([taken(size_mb=5), replace(taken(), size_bytes=5_000_001)])


@pytest.mark.parametrize(
    ("seconds", "every_s", "each_s", "expected"),
    [(3600, 10, 20, "--every"), (60, 600, 10, "--every"), (3600, 60, 2, "--burst")],
)
def test_a_plan_without_room_is_refused(seconds: float, every_s: float, each_s: float, expected: str) -> None:
    with pytest.raises(TierwiseError, match=expected):
        DayPlan(seconds, every_s, BurstSchedule(each_s, 0.1, 0.5))


def test_the_page_of_a_day_is_that_of_the_command(day: Path, tmp_path: Path) -> None:
    """It was a page of texts, without the explorer of placements."""
    commanded, called = tmp_path / "commanded.html", tmp_path / "called.html"
    assert (
        CliRunner().invoke(app, ["advise", str(day), "--devices", "nvme-dc", "-o", str(commanded)]).exit_code
        == 0
    )
    tw.open_recording(day).advise(["nvme-dc"]).to_html(called)
    assert called.read_bytes() == commanded.read_bytes()
