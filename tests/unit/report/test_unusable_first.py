"""A recording that is not usable: every answer says so before anything else, why, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import FakeReplay, about
from support.fake_replay import predictor as fake_predictor
from support.fleet_factory import advised, database, option
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.cli import app
from tierwise.fleet.database_options import DatabaseOptions, DatabaseOptionsTask, database_options
from tierwise.fleet.fleet_databases import RecordingLocation
from tierwise.predict import Predictor
from tierwise.predict.replayer import Replayer
from tierwise.predict.usability import judge_usability
from tierwise.recording import Recording
from tierwise.report.advice import advice_page, survey_advice
from tierwise.report.document import Text
from tierwise.report.fleet_report import fleet_document, fleet_page
from tierwise.report.recording.advice_report import advice_document
from tierwise.report.render import to_html_page

EXAMPLES = Path(__file__).parents[3] / "examples" / "recordings"
STRESS = {"program": "stress-ng", "pids": [4711, 4712], "cpu_share": 0.31}
BAD: dict[str, tuple[FakeReplay, dict[str, Any], str]] = {
    "foreign": (FakeReplay(), {"foreign_cpu_share": 0.4}, "Other programs used 40\u00a0% of the processors"),
    "named": (
        FakeReplay(),
        {"foreign_cpu_share": 0.4, "foreign_programs": [STRESS]},
        "stop stress-ng (pid 4711, 4712: 31\u00a0%) while recording",
    ),
    "lost": (FakeReplay(), {"losses": {"recorded_events": 900, "lost_events": 100}}, "record with a shorter"),
    "few": (FakeReplay(transactions=12), {}, "record at least 9 times as long"),
    "replay": (FakeReplay(error=0.3), {}, "+30\u00a0%"),
}
kinds = pytest.mark.parametrize("kind", BAD)


def predictor(kind: str, engine: str = "postgres") -> Predictor:
    fake, fields, _ = BAD[kind]
    return fake_predictor(fake, engine=engine, **fields)


@kinds
@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_the_advice_begins_with_it_in_text_json_and_page(kind: str, engine: str) -> None:
    of = predictor(kind, engine)
    advice = advise(of, AdviceOptions(["nvme-dc"]))
    first, second, *_ = [block for block in advice_document(advice) if isinstance(block, Text)]
    assert first.text.startswith("This recording is not usable") and BAD[kind][2] in second.text
    assert not advice.usable and advice.remarks[0].blocks
    page = advice_page(survey_advice(of, advice, PaymentTerms(), Path("shop")))
    assert 0 < page.index("This recording is not usable") < page.index("<h1>")
    assert not any(warning.text.startswith(advice.remarks[0].reason) for warning in advice.warnings), (
        "said once"
    )


@pytest.mark.parametrize("asked", [["advise", "--devices", "nvme-dc"], ["predict", "--devices", "nvme-dc"]])
def test_csv_which_has_tables_alone_leaves_it_to_standard_error(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: predictor("replay"))
    result = CliRunner().invoke(app, [*asked, "bank", "--format", "csv"])
    assert result.stderr.startswith("This recording is not usable: do not act on what follows.\n")
    assert "+30\u00a0%" in result.stderr and "not usable" not in result.stdout and "," in result.stdout


def test_a_usable_recording_says_nothing_of_the_kind() -> None:
    of = fake_predictor()
    advice = advise(of, AdviceOptions(["nvme-dc"]))
    assert advice.usable and "not usable" not in advice_page(
        survey_advice(of, advice, PaymentTerms(), Path("shop"))
    )
    assert all("not usable" not in block.text for block in advice_document(advice) if isinstance(block, Text))


def test_an_older_recording_does_not_name_the_programs() -> None:
    (remark,) = judge_usability(predictor("foreign")).remarks
    assert "their names were not recorded" in remark.fix


@kinds
def test_a_fleet_begins_with_it_in_text_and_page(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predictor, "open", lambda *_, **__: predictor(kind))
    options = database_options(
        DatabaseOptionsTask(RecordingLocation("bank", "bank"), ("ssd-nvme-dc",), PaymentTerms())
    )
    assert isinstance(options, DatabaseOptions) and BAD[kind][2][1:] in options.unusable[0]
    fleet = advised(options, database("shop", option(10, 3.0)))
    first, second, *_ = [block for block in fleet_document(fleet) if isinstance(block, Text)]
    assert first.text == "Not usable, so their files stay where they are: bank."
    assert second.text.startswith("bank: ")
    page = to_html_page(fleet_page(fleet))
    assert "Not usable" in page[page.index("<h1") : page.index("</h1>")]


@kinds
def test_a_prediction_begins_with_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, fields, expected = BAD[kind]
    monkeypatch.setattr(Recording, "open", lambda *_, **__: Recording(Path("rec"), about(**fields)))
    monkeypatch.setattr(Replayer, "open", lambda _, fresh=False: Replayer(fake, fresh=fresh))
    shown = (
        CliRunner().invoke(app, ["predict", "rec", "--place", "log=nvme-dc"], env={"COLUMNS": "400"}).stdout
    )
    first, second, *_ = shown.splitlines()
    assert first.startswith("This recording is not usable") and expected in second


@pytest.mark.parametrize("by", [[], ["--by", "file"]])
def test_a_profile_begins_with_it(by: list[str], tmp_path: Path) -> None:
    recording, page = tmp_path / "rec", tmp_path / "profile.html"
    recording.mkdir()
    for file in (EXAMPLES / "order-entry").iterdir():
        (recording / file.name).write_bytes(file.read_bytes())
    content = json.loads((recording / "about.json").read_text())
    (recording / "about.json").write_text(json.dumps(content | {"foreign_cpu_share": 0.4}))
    names = tmp_path / "names.csv"
    names.write_text(
        "path,name,kind,table,size_bytes\nbase/5/16426,public.orders_pkey,index,public.orders,1\n"
    )
    asked = ["profile", str(recording), *([*by, "--names", str(names)] if by else ["--html", str(page)])]
    first, second, *_ = CliRunner().invoke(app, asked, env={"COLUMNS": "400"}).stdout.splitlines()
    assert first.startswith("This recording is not usable") and "Other programs used 40\u00a0%" in second
    if not by:
        text = page.read_text("utf-8")
        assert 0 < text.index("This recording is not usable") < text.index("Where the time went</")


def test_a_verified_forecast_begins_with_it(tmp_path: Path) -> None:
    recording, forecast = tmp_path / "after", tmp_path / "forecast.json"
    asked = ["predict", str(EXAMPLES / "order-entry"), "--seeds", "2", "--format", "json"]
    forecast.write_text(CliRunner().invoke(app, asked).stdout)
    recording.mkdir()
    for file in (EXAMPLES / "order-entry").iterdir():
        (recording / file.name).write_bytes(file.read_bytes())
    content = json.loads((recording / "about.json").read_text())
    (recording / "about.json").write_text(json.dumps(content | {"foreign_cpu_share": 0.4}))
    checked = ["verify", str(forecast), str(recording), "--seeds", "2"]
    first, second, *_ = CliRunner().invoke(app, checked, env={"COLUMNS": "400"}).stdout.splitlines()
    assert first.startswith("The recording after is not usable") and "Other programs used 40\u00a0%" in second
