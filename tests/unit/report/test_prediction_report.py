"""What is said of predictions and of advice: sentences, tables, the command line. The simulator is a fake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from support.fake_replay import REQUESTS, FakeReplay, about, predictor
from tierwise.advise import AdviceOptions, Goal, PaymentTerms, advise
from tierwise.cli import app
from tierwise.cli.output import print_document
from tierwise.model.errors import TierwiseError
from tierwise.predict import ModelError, Predictor, Scenario, rank_placements
from tierwise.predict.replayer import Replayer
from tierwise.recording import Recording
from tierwise.report.charts.chart_style import to_png
from tierwise.report.document import Document
from tierwise.report.recording.advice_report import advice_document, fastest_sentence, further_sentences
from tierwise.report.recording.decision_words import decision_headline
from tierwise.report.recording.prediction_report import (
    prediction_document,
    predictions_chart,
    ranking_document,
)

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


@pytest.mark.parametrize("order", [1, -1])
def test_of_placements_that_are_as_fast_the_one_with_fewest_moves_comes_first(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexes add less than quiet runs differ, so the first sentence moves the log alone."""
    for role, requests in {"log": 0.1, "data": 0.0002, "index": 0.0002}.items():
        monkeypatch.setitem(REQUESTS, role, requests)
    of = predictor(model_error=ModelError())
    places = [{"log": "nvme-dc"}, {"log": "nvme-dc", "index": "nvme-dc"}, {"all": "nvme-dc"}][::order]
    answers = of.predict([Scenario(placement=place) for place in places])
    text = text_of(prediction_document(of.run, of.as_recorded, answers))
    assert text.startswith("Move the log to ssd-nvme-dc: ")


def test_no_difference_is_called_that() -> None:
    of = predictor(model_error=ModelError())
    answers = of.predict([Scenario(placement={"log": "7k2"})])
    assert "no difference that can be told (1.00 (0.82–1.22) times the throughput)" in text_of(
        prediction_document(of.run, of.as_recorded, answers)
    )


def test_a_refusal_is_said_with_its_reason_and_the_fix() -> None:
    of = predictor()
    text = text_of(prediction_document(of.run, of.as_recorded, of.predict([Scenario(memory_bytes=48 << 30)])))
    assert "With 48.0 GiB of memory: no answer, because " in text
    assert "it was taken in bursts: leave out --memory" in text


def test_a_run_that_is_not_reproduced_is_answered_and_said() -> None:
    of = predictor(FakeReplay(error=0.3))
    text = text_of(
        prediction_document(of.run, of.as_recorded, of.predict([Scenario(placement={"log": "ram"})]))
    )
    assert "times the throughput" in text
    assert "(+30\u00a0%): the interval is wider for it" in text


def test_bounds_alone_are_called_bounds() -> None:
    of = predictor(FakeReplay(unsure=4.0, can_change_memory=True))
    text = text_of(prediction_document(of.run, of.as_recorded, of.predict([Scenario(memory_bytes=48 << 30)])))
    assert "With 48.0 GiB of memory: between " in text
    assert "the replay cannot tell more" in text


def test_a_ranking_has_a_column_for_each_role_and_marks_equals() -> None:
    of = predictor(model_error=ModelError())
    text = text_of(ranking_document(of.run, of.as_recorded, rank_placements(of, ["nvme-dc", "sata-dc"])))
    assert text.startswith(
        "Best of 8 placements: log on ssd-nvme-dc, data on ssd-nvme-dc, index on ssd-nvme-dc"
    )
    assert re.search(r"\n2= +ssd-nvme-dc", text)


def on_a_volume() -> Predictor:
    """A recording on one volume of 200 GiB with nothing else on it."""
    volume = {"name": "nvme1n1", "major": 259, "minor": 1, "mount": "/pg", "shared": 1, "first_sector": 0}
    volume |= {"roles": ["log", "data", "index", "temp"], "sectors": 200 << 21}
    volume |= {"profile": None, "write_cache": False}
    return predictor(devices=[volume])


@pytest.mark.parametrize(
    ("devices", "budget", "goal", "terms"),
    [
        (["nvme-dc"], None, "tps=900", PaymentTerms()),
        (["nvme-dc", "gp3", "io2"], 20.0, "p99=2ms", PaymentTerms.parse(headroom="30%")),
        (["gp3"], None, "tps=3000", PaymentTerms.parse(have="nvme-dc")),
        (["gp3"], 5.0, "p50=10us", PaymentTerms.parse(years=3)),
        (["nvme-dc"], None, "tps=10000", PaymentTerms()),
        (["nvme-dc"], None, "tps=12000", PaymentTerms()),
        (["7k2"], 1.0, None, PaymentTerms()),
        (["st1"], None, None, PaymentTerms.parse(recorded_on="io2")),
    ],
    ids=["one", "budget", "owned", "far-goal", "likely", "unlikely", "nothing", "credit"],
)
def test_advice_in_words(
    devices: list[str],
    budget: float | None,
    goal: str | None,
    terms: PaymentTerms,
    snapshot: SnapshotAssertion,
) -> None:
    of = on_a_volume()
    advice = advise(of, AdviceOptions(devices, budget, goal and Goal.parse(goal), terms or PaymentTerms()))
    sentences = [decision_headline(advice), *further_sentences(advice)]
    assert [sentence.replace("\u00a0", " ") for sentence in sentences] == snapshot


def test_a_step_within_the_error_of_predictions_is_named_and_not_recommended(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setitem(REQUESTS, "index", 0.01)
    advice = advise(on_a_volume(), AdviceOptions(["nvme-dc"], terms=PaymentTerms.parse(recorded_on="gp3")))
    sentences = [decision_headline(advice), *further_sentences(advice)]
    assert [sentence.replace("\u00a0", " ") for sentence in sentences] == snapshot


def test_advice_has_the_sources_of_its_prices_and_the_old_ones(tmp_path: Path) -> None:
    prices = tmp_path / "mine.toml"
    prices.write_text(
        'currency = "CHF"\n[devices.nvme-dc]\npurchase = 480\n'
        'source = "offer of a dealer"\ndate = "2024-05"\n'
    )
    text = text_of(
        advice_document(
            advise(predictor(), AdviceOptions(["nvme-dc"], terms=PaymentTerms.parse(prices=prices)))
        )
    )
    assert "for 8\u00a0CHF/month" in text and "$" not in text
    assert "CHF/month" in text and "worn out after" in text
    assert "Prices that may be older than a year: ssd-nvme-dc (2024-05)." in text
    assert "Price of ssd-nvme-dc (2024-05): offer of a dealer." in text


def test_with_nothing_to_gain_the_advice_says_what_else_would_help() -> None:
    sentence = decision_headline(advise(predictor(), AdviceOptions(["7k2"]))).replace("\u00a0", " ")
    assert sentence.startswith(
        "Nothing you can buy here helps: none of all 8 placements is faster, because 70 %"
    )
    assert "What would: fewer commits for the same work" in sentence and "(20 % on CPU)" in sentence


def test_the_chart_can_be_drawn() -> None:
    of = predictor()
    answers = of.predict([Scenario(placement={"log": "nvme-dc"}), Scenario(memory_bytes=48 << 30)])
    assert to_png(predictions_chart(of.as_recorded, answers)).startswith(b"\x89PNG")


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
    content = json.loads(result.stdout)
    assert [prediction["scenario"]["placement"] for prediction in content["predictions"]] == [
        {"log": "nvme-dc"},
        {"all": "gp3"},
    ]
    assert all(
        any("dropped 3 of 1000" in w for w in prediction["warnings"]) for prediction in content["predictions"]
    )
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
        ["advise", REC, "--have", "nvme-dc", "--years", "3", "--growth", "50%", "--recorded-on", "gp3"],
    ],
)
def test_commands_answer(arguments: list[str]) -> None:
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "dropped 3 of 1000" in result.output


@pytest.mark.usefixtures("faked")
def test_names_without_a_table_are_refused() -> None:
    result = RUNNER.invoke(app, ["predict", REC, "--place", "log=nvme-dc", "--names", "none.csv"])
    assert isinstance(result.exception, TierwiseError) and "no table or index is placed" in str(
        result.exception
    )


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
        (["advise", REC, "--devices", "nvme-dc", "--budget", "50 EUR"], "the prices are in USD"),
        (["advise", REC], "no device to move files to"),
        (
            ["advise", REC, "--devices", "nvme-dc", "--headroom", "lots"],
            "--headroom: 'lots' is no percentage",
        ),
        (["advise", REC, "--devices", "nvme-dc", "--prices", "none.toml"], "none.toml: No such file"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], says: str) -> None:
    result = RUNNER.invoke(app, arguments)
    assert isinstance(result.exception, TierwiseError)
    assert says in str(result.exception)


def test_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=str(tmp_path)):
        Predictor.open(tmp_path)


def test_a_prediction_says_what_a_restart_loses() -> None:
    of = predictor(model_error=ModelError())
    answers = of.predict([Scenario(placement={"log": "ram"}), Scenario(placement={"log": "nvme-dc"})])
    assert [answer.lost_at_stop for answer in answers] == [["log"], []]
    text = text_of(prediction_document(of.run, of.as_recorded, answers))
    said = "Caution: a power cut or a restart of the machine loses the log, since ram is memory."
    assert text.count(said) == 1
    ranked = rank_placements(of, ["ram"])
    assert "a restart of the machine loses" in text_of(ranking_document(of.run, of.as_recorded, ranked))


def test_one_placement_is_not_the_best_of_many() -> None:
    of = predictor(model_error=ModelError())
    ranked = rank_placements(of, ["nvme-dc"])
    assert ranked.tried == 1
    assert "Best of 1 placement: " in text_of(ranking_document(of.run, of.as_recorded, ranked))


def test_an_answer_without_a_figure_says_so() -> None:
    of = predictor(model_error=ModelError())
    (answer,) = of.predict([Scenario(rate_per_s=0.001)])
    empty = answer.changed(speedup=None, rate_per_s=None)
    text = text_of(prediction_document(of.run, of.as_recorded, [empty]))
    assert "nothing was done in the time that was simulated" in text


@pytest.mark.usefixtures("faked")
def test_emulated_disks_are_refused_where_nothing_is_placed() -> None:
    result = RUNNER.invoke(app, ["predict", REC, "--cores", "4", "--emulated"])
    assert isinstance(result.exception, TierwiseError) and "nothing is placed" in str(result.exception)


def test_what_is_not_faster_is_compared_with_the_recommended_placement() -> None:
    of = predictor(model_error=ModelError())
    advice = advise(of, AdviceOptions(["nvme-dc"]))
    alike = advice.decision.option.prediction.speedup
    assert alike is not None
    fastest = advice.decision.option.changed(placement={"log": "ssd-nvme-dc", "temp": "ssd-nvme-dc"})
    step = alike.changed(value=1.0, low=0.9, high=1.1)
    said = fastest_sentence(advice.changed(fastest=fastest, step_to_fastest=step))
    assert said.startswith("None of ") and "is faster than this one by more than chance" in said
    staying = fastest.changed(placement={})  # a hair faster than the recommended one, which saves money
    step = alike.changed(value=1.001, low=1.0005, high=1.0015)
    assert fastest_sentence(advice.changed(fastest=staying, step_to_fastest=step)) == said
