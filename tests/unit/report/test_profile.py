"""Where the time of a recording went: from its tables to what is said, drawn and written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from support.fake_replay import FakeReplay, predictor
from support.paths import RECORDINGS
from support.recording_factory import ONE_COMMIT, write_recording
from tierwise.advise.alternatives import machine_assumptions
from tierwise.advise.durability import DeviceDeathCounts
from tierwise.cli import app
from tierwise.cli.output import print_document
from tierwise.device_models.instances import CloudInstance
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict.replayer import Replayer
from tierwise.predict.time_savings import TimeSavings, time_savings_by_role
from tierwise.recording.breakdown import Breakdown, break_down
from tierwise.report.charts.chart_style import to_png
from tierwise.report.recording.profile_report import (
    common_directory,
    profile_chart,
    profile_document,
    profile_in_words,
    profile_page,
    recording_extent_text,
)
from tierwise.report.render import to_html_page

RUNNER = CliRunner()
EXAMPLES = sorted(RECORDINGS.glob("*/about.json"))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recording(tmp_path_factory.mktemp("profile") / "rec")


def test_a_count_of_one_is_no_plural(breakdown: Breakdown) -> None:
    one = breakdown.model_copy(update={"cores": 1, "bursts": 1})
    text = recording_extent_text(one)
    assert "in 1 burst;" in text and " of 1 core;" in text
    assert (
        "0 of 1 death lost"
        in DeviceDeathCounts(
            engine="postgres", role=Role.LOG, deaths=1, as_is=1, salvaged=0, never=0, lost=0, damaged=0
        ).words
    )
    small = CloudInstance(name="small", source="made up here", iops=1000, mb_per_s=100, vcpus=1)
    (note,) = machine_assumptions([small], 2)
    assert note.startswith("small has 1 processor and the recorded machine 2")


@pytest.fixture(scope="module")
def breakdown(directory: Path) -> Breakdown:
    return break_down(directory)


def text_of(breakdown: Breakdown, saved: TimeSavings, *warnings: str) -> str:
    with (console := Console(width=160)).capture() as captured:
        print_document(profile_document(breakdown, saved, warnings), console)
    return captured.get()


def test_parts_of_each_class_sum_to_its_time(breakdown: Breakdown) -> None:
    assert [class_time.name for class_time in breakdown.classes] == ["session", "client"]
    for class_time in breakdown.classes:
        assert sum(class_time.parts.values()) == pytest.approx(1.0, abs=1e-9)
    assert breakdown.sum_error == 0.0
    assert breakdown.classes[0].parts == pytest.approx({"cpu": 0.2, "log_device": 0.8})


@pytest.mark.parametrize("about", EXAMPLES, ids=lambda about: about.parent.name)
def test_sessions_have_the_shares_that_predict_observes(about: Path) -> None:
    sessions = next(
        class_time for class_time in break_down(about.parent).classes if class_time.name == "session"
    )
    observed = Replayer.open(about.parent).work.observed.shares
    shares = {part: sessions.parts.get(part, 0.0) for part in observed}
    assert shares == pytest.approx(observed, abs=0.005)


def test_the_log_is_what_the_session_waited_for(breakdown: Breakdown) -> None:
    log = next(row for row in breakdown.roles if row.role is Role.LOG)
    assert (log.devices, log.writes, log.syncs, log.written_bytes) == (["sdb1"], 1, 1, 8192)
    assert log.waited_s == pytest.approx(0.008)
    assert breakdown.files[0].path == "/d/pg_wal/0001"


def test_what_removal_saves_is_replayed_not_added_up(breakdown: Breakdown) -> None:
    waits = [{"category": "log_device", "role": "log", "time_us": 4000.0}]
    of = predictor(FakeReplay(demands={"server_cpu_us": 200.0, "waits": waits}))
    saved = time_savings_by_role(of, [Role.LOG, Role.DATA])
    assert [row.role for row in saved.rows] == ["log", "data", "all"]
    # A request takes the fake 4 ms (1 of the log, 0.5 of data, 0.2 of the index), or 1 ms on another device;
    # a transaction takes 0.2 ms of CPU besides.
    log = saved.rows[0]
    assert log.speedup is not None
    assert log.speedup.value == pytest.approx((0.2 + 6.8) / (0.2 + 1.0 + 2.8), rel=0.01)
    assert log.share == pytest.approx(1 - 4.0 / 7.0, abs=0.01)
    text = text_of(breakdown, saved)
    assert "If the log took no time at its device, 43\u00a0% of the time would be saved at most." in text
    assert "The mean transaction, without the cost of recording" in text
    assert re.search(r"server computes +200 µs\n", text), text
    assert re.search(r"waits: log device, log +4\.00 ms\n", text), text


def test_savings_of_a_run_that_is_not_reproduced_are_unsure_and_said_to_be(breakdown: Breakdown) -> None:
    sure, saved = (
        time_savings_by_role(predictor(FakeReplay(error=error)), [Role.LOG]) for error in (0.0, 0.3)
    )
    widths = [
        saving.rows[0].speedup.high / saving.rows[0].speedup.low
        for saving in (sure, saved)
        if saving.rows[0].speedup
    ]
    assert widths[1] > widths[0]
    text = text_of(breakdown, saved, "the kernel dropped 3 of 1000 events")
    assert "Warning: the kernel dropped 3 of 1000 events." in text
    assert "Warning: replaying the recorded run gives" in text


def test_the_chart_shows_roles_below_parts(breakdown: Breakdown) -> None:
    drawn = json.dumps(profile_chart(breakdown).to_dict())
    assert "sessions, by role" in drawn
    assert "clients, by role" not in drawn
    assert to_png(profile_chart(breakdown)).startswith(b"\x89PNG")
    assert "sessions: on CPU 20\u00a0%, log device 80\u00a0%" in profile_in_words(breakdown)


def test_the_page_opens_offline(breakdown: Breakdown) -> None:
    page = to_html_page(profile_page("rec", breakdown, TimeSavings(), ["one <odd> warning"]))
    assert "Where the time went" in page
    assert "one &lt;odd&gt; warning" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_command_prints_tables_or_json(directory: Path, tmp_path: Path) -> None:
    page = tmp_path / "profile.html"
    shown = RUNNER.invoke(app, ["profile", str(directory), "--no-savings", "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "Time of the sessions: 80\u00a0% log device, 20\u00a0% on CPU." in shown.output
    assert page.read_text("utf-8").startswith("<!doctype html>")
    read = RUNNER.invoke(app, ["profile", str(directory), "--no-savings", "--format", "json"])
    answer = json.loads(read.stdout)
    assert answer["breakdown"]["classes"][0]["class"] == "session"
    assert answer["savings"]["rows"] == []


def test_the_page_has_the_verdict_on_the_recording(tmp_path: Path) -> None:
    page = tmp_path / "profile.html"
    shown = RUNNER.invoke(app, ["profile", str(RECORDINGS / "pgbench-10gb"), "--html", str(page)])
    for text in (shown.stdout, page.read_text("utf-8")):
        assert "This recording is not usable" in text


def test_a_recording_without_rows_has_a_profile(tmp_path: Path) -> None:
    empty: dict[str, list[tuple[object, ...]]] = {name: [] for name in ONE_COMMIT}
    breakdown = break_down(write_recording(tmp_path / "rec", empty))
    assert "No thread was seen." in text_of(breakdown, TimeSavings())
    assert to_png(profile_chart(breakdown)).startswith(b"\x89PNG")


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"about\.json"):
        break_down(tmp_path)


def test_paths_are_shown_below_their_common_directory() -> None:
    assert common_directory(["/a/b/log/1", "/a/b/data/2"]) == "/a/b/"
    assert common_directory(["/1", "/2"]) == "/"
    assert common_directory([]) == "/"
