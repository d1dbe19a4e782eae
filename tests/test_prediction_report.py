"""What is said of predictions and of advice: sentences, tables, the command line. The simulator is a fake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_replay import FakeReplay, about, predictor
from rich.console import Console
from typer.testing import CliRunner

from tierwise.advise import Goal, advise
from tierwise.cli import app
from tierwise.cli.output import print_document
from tierwise.model.errors import TierwiseError
from tierwise.predict import ModelError, Predictor, Scenario, rank
from tierwise.predict.replayer import Replayer
from tierwise.recording import Recording
from tierwise.report.charts.prediction import answers_chart
from tierwise.report.charts.render import to_png
from tierwise.report.document import Document
from tierwise.report.recording.advice import advice_document
from tierwise.report.recording.advice_words import first_sentence, further_sentences
from tierwise.report.recording.prediction import prediction_document, ranking_document

RUNNER = CliRunner()
REC = "rec"


def text_of(document: Document) -> str:
    with (console := Console(width=200, force_terminal=True, color_system=None)).capture() as captured:
        print_document(document, console)
    return captured.get()


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording that is not there, replayed by the fake."""
    recording = Recording(Path(REC), about(losses={"recorded_events": 997, "lost_events": 3}))
    monkeypatch.setattr(Recording, "open", lambda *_, **__: recording)
    monkeypatch.setattr(Replayer, "open", lambda _, fresh=False: Replayer(FakeReplay(), fresh=fresh))


def test_the_sentence_comes_first_and_gives_the_interval() -> None:
    of = predictor(model_error=ModelError())
    answers = of.predict([Scenario(placement={"log": "nvme-dc"})])
    text = text_of(prediction_document(of.run, of.as_recorded, answers))
    assert text.startswith(
        "Move the log to ssd-nvme-dc: 2.3 (1.85–2.8) times the throughput; then 70\u00a0% "
    )
    assert "Recorded: postgres 18.6, 4 clients, 2 cores, 60.0 s: 571 transactions a second" in text
    assert "not validated" in text


def test_no_difference_is_called_that() -> None:
    of = predictor(model_error=ModelError())
    answers = of.predict([Scenario(placement={"log": "7k2"})])
    assert "no difference that can be told (1.00 (0.82–1.22) times the throughput)" in text_of(
        prediction_document(of.run, of.as_recorded, answers)
    )


def test_a_refusal_is_said_with_its_reason_and_the_fix() -> None:
    of = predictor()
    text = text_of(prediction_document(of.run, of.as_recorded, of.predict([Scenario(memory_bytes=48 << 30)])))
    assert "With 48.0 GiB of memory: no answer." in text
    assert "it was taken in bursts: leave out --memory" in text


def test_a_run_that_is_not_reproduced_is_answered_and_said() -> None:
    of = predictor(FakeReplay(error=0.3))
    text = text_of(
        prediction_document(of.run, of.as_recorded, of.predict([Scenario(placement={"log": "ram"})]))
    )
    assert "times the throughput" in text
    assert "(+30%): the interval is wider for it" in text


def test_bounds_alone_are_called_bounds() -> None:
    of = predictor(FakeReplay(unsure=4.0, can_change_memory=True))
    text = text_of(prediction_document(of.run, of.as_recorded, of.predict([Scenario(memory_bytes=48 << 30)])))
    assert "With 48.0 GiB of memory: between " in text
    assert "the replay cannot tell more" in text


def test_a_ranking_has_a_column_for_each_role_and_marks_equals() -> None:
    of = predictor(model_error=ModelError())
    text = text_of(ranking_document(of.run, of.as_recorded, rank(of, ["nvme-dc", "sata-dc"])))
    assert text.startswith(
        "Best of 8 placements: log on ssd-nvme-dc, data on ssd-nvme-dc, index on ssd-nvme-dc"
    )
    assert re.search(r"\n2= +ssd-nvme-dc", text)


def test_advice_says_what_to_move_first_and_for_what_money() -> None:
    of = predictor(model_error=ModelError())
    advice = advise(of, ["nvme-dc"], None, Goal.parse("tps=900"))
    assert first_sentence(advice).startswith(
        "Move the log to ssd-nvme-dc: 2.3 (1.85–2.8) times the throughput for 10\u00a0$/month; "
        "then the data to ssd-nvme-dc: a further 2.7 times at no further cost; 1 more move"
    )
    said = " ".join(further_sentences(advice))
    assert "That is the best of all 8 placements." in said
    assert "Cheapest that reaches 900 transactions a second: the log" in said
    assert "ssd-nvme-dc would be worn out in 7 months of this load without a pause" in said
    text = text_of(advice_document(advice))
    assert "more/s" in text
    assert "worn out after" in text


def test_with_nothing_to_gain_the_advice_is_to_move_nothing() -> None:
    advice = advise(predictor(), ["7k2"])
    assert first_sentence(advice).startswith("Move nothing")


def test_the_chart_can_be_drawn() -> None:
    of = predictor()
    answers = of.predict([Scenario(placement={"log": "nvme-dc"}), Scenario(memory_bytes=48 << 30)])
    assert to_png(answers_chart(of.as_recorded, answers)).startswith(b"\x89PNG")


@pytest.mark.usefixtures("faked")
def test_predict_prints_json_with_the_warnings(tmp_path: Path) -> None:
    png = tmp_path / "answers.png"
    result = RUNNER.invoke(
        app,
        [
            "predict",
            REC,
            "--place",
            "log=nvme-dc",
            "--place",
            "all=gp3",
            "--format",
            "json",
            "--png",
            str(png),
        ],
    )
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert [one["scenario"]["placement"] for one in said["predictions"]] == [
        {"log": "nvme-dc"},
        {"all": "gp3"},
    ]
    assert all(any("dropped 3 of 1000" in w for w in one["warnings"]) for one in said["predictions"])
    assert png.exists()


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", REC, "--devices", "nvme-dc,7k2"],
        ["predict", REC, "--devices", "nvme-dc,7k2", "--format", "json"],
        ["predict", REC, "--cores", "8", "--clients", "16"],
        ["predict", REC, "--place", "log=nvme-dc", "--fresh"],
        ["advise", REC, "--devices", "nvme-dc,gp3", "--budget", "$50/month", "--goal", "p99=2ms"],
        ["advise", REC, "--devices", "nvme-dc", "--format", "json"],
    ],
)
def test_commands_answer(arguments: list[str]) -> None:
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "dropped 3 of 1000" in result.output


@pytest.mark.usefixtures("faked")
def test_a_refused_question_ends_with_status_1() -> None:
    assert RUNNER.invoke(app, ["predict", REC, "--memory", "48G"]).exit_code == 1


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["predict", REC, "--place", "wal=ram"], "unknown role"),
        (["predict", REC, "--place", "log=nope-nope"], "unknown device profile"),
        (["predict", REC, "--memory", "much"], "not a size"),
        (["predict", REC, "--memory", "48"], "48 is 48 bytes: write the unit, for example 48G"),
        (["predict", REC, "--devices", ","], "no device"),
        (["advise", REC, "--devices", "nvme-dc", "--budget", "cheap"], "no amount of money"),
        (["advise", REC, "--devices", "nvme-dc", "--goal", "fast"], "no goal"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], says: str) -> None:
    result = RUNNER.invoke(app, arguments)
    assert isinstance(result.exception, TierwiseError)
    assert says in str(result.exception)


def test_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=str(tmp_path)):
        Predictor.open(tmp_path)
