"""Text, JSON, page, explorer and served page of an advice have one decision."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fake_replay import SERVICE_US, predictor
from support.fake_tables import tables_predictor
from tierwise.advise import Advice, AdviceOptions, Goal, PaymentTerms, advise
from tierwise.advise.search import PlacementSearch
from tierwise.cli import app
from tierwise.predict import Predictor
from tierwise.predict.named_devices import roles_lost_at_stop
from tierwise.report.advice import AdviceSurvey, advice_page, page_decision, survey_advice
from tierwise.report.advice.page_data import advice_page_data
from tierwise.report.document import Text
from tierwise.report.recording.advice_report import advice_document, left_out_sentences
from tierwise.report.recording.decision_words import decision_headline, volatile_device_sentence
from tierwise.report.recording.prediction_report import move_words
from tierwise.serve.served_recordings import make_live_page

EXAMPLES = Path(__file__).parents[3] / "examples" / "recordings"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/about.json"))


def page(of: Predictor, advice: Advice) -> AdviceSurvey:
    return survey_advice(of, advice, PaymentTerms(), Path("shop"))


def heading(html: str) -> str:
    match = re.search(r"<h1>(.*?)</h1>", html, re.DOTALL)
    assert match
    return match[1].replace("\u2060", "")


@pytest.mark.parametrize("name", NAMES)
def test_the_outputs_of_a_shipped_recording_agree(name: str, tmp_path: Path) -> None:
    file = tmp_path / "advice.html"
    asked = ["advise", str(EXAMPLES / name), "--devices", "nvme-dc,gp3", "--seeds", "2", "-o", str(file)]
    printed = CliRunner().invoke(app, [*asked, "--format", "json"]).stdout
    advice = json.loads(printed[: printed.rindex("}") + 1])["advice"]
    placement = advice["decision"]["option"]["placement"]
    html = file.read_text("utf-8")
    assert heading(html).startswith(f"Move {move_words(placement)}: ")
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])  # type: ignore[index]
    number: int = data["advised"]
    digits: list[int] = []
    for _ in data["roles"]:
        number, digit = divmod(number, len(data["devices"]))
        digits.insert(0, digit)
    shown = {
        role: data["devices"][digit]["name"]
        for card, digit in zip(data["roles"], digits, strict=True)
        for role in card["roles"]
        if digit
    }
    assert shown == placement
    assert data["figures"]["told"][data["advised"]] == 1


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
@pytest.mark.parametrize("goal", [None, "tps=100", "tps=900", "tps=90000"])
def test_they_agree_with_a_goal_too(engine: str, goal: str | None) -> None:
    of = predictor(engine=engine)
    advice = advise(of, AdviceOptions(["nvme-dc", "gp3"], goal=Goal.parse(goal) if goal else None))
    first = next(block.text for block in advice_document(advice) if isinstance(block, Text))
    made = page(of, advice)
    start = page_decision.page_headline(made).partition(":")[0].removesuffix(".")
    assert first == decision_headline(advice) and first.startswith(start)
    assert made.placement == advice.decision.option.placement
    assert advice_page_data(made)["advised"] == made.survey.number(advice.decision.option.placement)


def test_the_served_page_has_it_too() -> None:
    of = predictor()
    options = AdviceOptions(["nvme-dc"])
    html = make_live_page(Path("shop"), of, options, [])
    assert heading(html) == page_decision.page_headline(
        page(predictor(), advise(predictor(), options))
    ).replace("\u2060", "")


def test_the_served_page_lists_tables_without_a_choice_of_them() -> None:
    """The server answers placements of roles: a choice of tables would show figures of those."""
    of = tables_predictor(["public.orders", "public.orders_pkey"])
    html = make_live_page(Path("shop"), of, AdviceOptions(["nvme-dc"]), [])
    assert 'id="table-sets"' in html and "public.orders_pkey" in html and "ALTER TABLE" in html
    assert 'id="table-none"' not in html
    advice = advise(of, AdviceOptions(["nvme-dc"]), tables=True)
    of_file, of_live = advice_page_data(page(of, advice)), advice_page_data(page(of, advice), {"sliders": []})
    assert any("rows" in choice for choice in of_file["choices"])
    assert not any("rows" in choice for choice in of_live["choices"])
    assert len(of_live["choices"]) == len(of_live["choice_figures"]["rate"])


@pytest.mark.parametrize("engine", ["postgres", "rocksdb"])
def test_memory_is_advised_only_for_a_database_that_can_be_rebuilt(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart loses what is in RAM, however fast and cheap it is."""
    monkeypatch.setitem(SERVICE_US, "ram", 1.0)
    for goal in (None, Goal.parse("tps=1")):
        advice = advise(predictor(engine=engine), AdviceOptions(["ram", "gp3"], goal=goal))
        assert advice.fastest and not roles_lost_at_stop(advice.fastest.placement)
        assert "takes all files: ram. --rebuildable" in " ".join(left_out_sentences(advice))
        assert not roles_lost_at_stop(advice.decision.option.placement)
        assert not any(roles_lost_at_stop(move.moved) for move in [*advice.moves, *advice.ladder])
    assert not advise(predictor(engine=engine), AdviceOptions(["ram", "gp3"])).decision.stays
    assert advise(predictor(engine=engine), AdviceOptions(["ram"])).decision.stays, "it was advised"
    alone = advise(predictor(engine=engine), AdviceOptions(["ram"], terms=PaymentTerms(rebuildable=True)))
    assert roles_lost_at_stop(alone.decision.option.placement)
    sentences = [block.text for block in advice_document(alone) if isinstance(block, Text)]
    assert (
        sentences[1] == volatile_device_sentence(alone)
        and "loses the data, the indexes and the log" in sentences[1]
    )


def test_the_front_of_the_page_and_of_a_fleet_begin_at_staying() -> None:
    of = predictor()
    advice = advise(of, AdviceOptions(["nvme-dc", "gp3"]))
    front = advice_page_data(page(of, advice))["figures"]["told"]
    assert front[0] == 0 and any(front)
    search = PlacementSearch(of, advice.devices, page(of, advice).costs)
    for option in search.front():
        number = page(of, advice).survey.number(option.placement)
        assert number is not None
        assert bool(front[number]) == (not search.staying.as_good_as(option))


def test_an_advice_page_of_staying_shows_where_the_time_goes() -> None:
    of = predictor()
    html = advice_page(page(of, advise(of, AdviceOptions(["7k2"]))))
    assert "Where the sessions" in html and "Before and after" not in html and 'id="steps"' not in html
